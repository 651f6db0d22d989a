"""Webhooks: endpoints are made here and their secret is shown once; afterwards they are switched off and on."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from memory.admin.base import ReadOnlyAdmin, RecordAdmin, Related, link
from memory.errors import SonderError
from memory.models import WebhookDelivery, WebhookEndpoint
from memory.models.vocabulary import DisabledBecause
from memory.models.webhook import CHOSEN_EVENTS
from memory.services.webhooks import endpoints

if TYPE_CHECKING:  # generic in its type stubs only
    _EndpointForm = forms.ModelForm[WebhookEndpoint]
else:
    _EndpointForm = forms.ModelForm


class NewEndpointForm(_EndpointForm):
    """What an operator decides about an endpoint; its secret is none of it."""

    events = forms.MultipleChoiceField(
        choices=[(event, event) for event in CHOSEN_EVENTS], widget=forms.CheckboxSelectMultiple
    )

    class Meta:
        model = WebhookEndpoint
        fields = ("account", "url", "events", "description")
        help_texts = {
            "account": "Empty: it hears of the whole installation.",
            "url": "https://host/path. It cannot be changed later: another receiver is another endpoint.",
        }

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"]
        try:
            endpoints.check_url(url)
        except SonderError as refusal:
            raise forms.ValidationError(refusal.errors["url"]) from None
        return url


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(RecordAdmin):
    """The salt of the secret is on no page."""

    list_display = ("url", link("account"), "event_words", "status", "delivered_at", "failing_since")
    list_filter = ("disabled_because", "account")
    list_select_related = ("account",)
    search_fields = ("url", "description", "account__slug")
    autocomplete_fields = ("account",)
    actions = ("disable", "enable")
    id_columns = ("pk", "account")
    related = (Related(model=WebhookDelivery, by="endpoint"),)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_switch_permission(self, request: HttpRequest) -> bool:
        """Switching is the one change there is."""
        return super().has_change_permission(request)

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        own = ("account", "url", "events", "description")
        return (*own, "status", "delivered_at", "failing_since", "id", "created_at", "links") if obj else own

    def get_form(self, request: HttpRequest, obj: Model | None = None, change: bool = False, **kwargs: Any) -> Any:
        return super().get_form(request, obj, change, **({} if obj else {"form": NewEndpointForm}), **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Makes it; the next page shows its secret, the only time that it is told."""
        chosen = form.cleaned_data
        account = chosen["account"]
        made = endpoints.add(
            account_id=account.pk if account else None,
            url=chosen["url"],
            events=chosen["events"],
            description=chosen["description"],
        )
        obj.pk, obj._state.adding, obj.secret = made.endpoint.pk, False, made.secret

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """The secret in the answer itself: a message would keep it in a cookie or in the session."""
        context = {**self.admin_site.each_context(request), "opts": self.opts, "title": "New endpoint", "made": obj}
        return TemplateResponse(request, "admin/new_endpoint.html", context)

    @admin.display(description="Events")
    def event_words(self, row: WebhookEndpoint) -> str:
        return ", ".join(row.events)

    @admin.display(description="Status")
    def status(self, row: WebhookEndpoint) -> str:
        if row.disabled_because:
            return f"off: {row.get_disabled_because_display()}"
        return "failing" if row.failing_since else "on"

    @admin.action(description="Switch the selected endpoints off", permissions=["switch"])
    def disable(self, request: HttpRequest, rows: QuerySet[Any]) -> None:
        """What waits for them is cancelled."""
        for row in rows:
            endpoints.disable(row.pk, DisabledBecause.OPERATOR)
            self.log_change(request, row, "Switched off.")
        self.message_user(request, f"Switched off: {len(rows)}.")

    @admin.action(description="Switch the selected endpoints on", permissions=["switch"])
    def enable(self, request: HttpRequest, rows: QuerySet[Any]) -> None:
        """They begin with a clean slate; events of the meantime are not told."""
        for row in rows:
            try:
                endpoints.enable(row.pk)
            except SonderError as refusal:
                self.message_user(request, f"{row.url}: {refusal.detail}", messages.ERROR)
                continue
            self.log_change(request, row, "Switched on.")
            self.message_user(request, f"Switched on: {row.url}")


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin):
    """The token is what entitles its holder to record how it went, so it is on no page."""

    list_display = ("event", link("endpoint"), "state", "attempts", "last_status", "last_error", "created_at")
    list_filter = ("state", "event")
    list_select_related = ("endpoint",)
    search_fields = ("endpoint__url", "owner", "last_error")
    id_columns = ("pk", "endpoint")
    hidden = ("claim_token",)
