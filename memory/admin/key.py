"""API keys: made, replaced and revoked; shown once."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Model, Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone

from memory.admin.base import RecordAdmin, Related, actor_of, link
from memory.admin.confirming import AT_ONCE, Question, ask
from memory.errors import Conflict
from memory.models import ApiKey, Interaction
from memory.services.keys import SCOPES, NewKey, create_key, is_live, revoke, rotate

MAX_DAYS = 36_500  # a hundred years
GRACE = (  # hours
    ("0", "is revoked at once"),
    ("1", "works for an hour"),
    ("24", "works for a day"),
    ("168", "works for a week"),
)

if TYPE_CHECKING:  # generic in its type stubs only
    _KeyForm = forms.ModelForm[ApiKey]
else:
    _KeyForm = forms.ModelForm


class NewKeyForm(_KeyForm):
    """Everything that a person decides about a key; its secret is none of it."""

    scopes = forms.MultipleChoiceField(
        choices=[(scope, scope) for scope in SCOPES],
        widget=forms.CheckboxSelectMultiple,
        help_text="What the key may do. loop: work and report outcomes. Give the least that does the job.",
    )

    class Meta:
        model = ApiKey
        fields = ("account", "name", "outcome_source", "scopes", "expires_at")
        labels = {"outcome_source": "Source"}
        help_texts = {
            "outcome_source": "Who judges when this key reports outcomes. It cannot be changed later.",
            "expires_at": "Empty: the key works until it is revoked.",
        }

    def clean_expires_at(self) -> datetime | None:
        at: datetime | None = self.cleaned_data["expires_at"]
        if at is not None and at <= timezone.now():
            raise forms.ValidationError("This time has passed already.")
        return at


class KeyStatus(admin.SimpleListFilter):
    """Whether a key works, and if not, why."""

    title = "status"
    parameter_name = "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(word, word) for word in ("live", "revoked", "expired")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        wanted = self.value()
        return queryset.filter(KEY_STATUS[wanted]) if wanted in KEY_STATUS else queryset


class RotationForm(forms.Form):
    """How a key is replaced."""

    grace = forms.ChoiceField(
        label="The old key",
        choices=GRACE,
        help_text="As long as it takes to bring the new one to whoever uses it. A key that leaked: at once.",
    )
    days = forms.IntegerField(
        label="Days until the new one expires", required=False, min_value=1, max_value=MAX_DAYS,
        help_text="Empty: it lives as long as the old one was to.",
    )  # fmt: skip


ROTATE = Question(
    title="Rotate keys",
    words="Each of these keys is replaced by a new one with the same account, name, source and scopes.",
    form=RotationForm,
)
REVOKE = Question(title="Revoke keys", words="These keys stop working at once. A revoked key cannot be brought back.")

_EXPIRED = Q(expires_at__lte=Now())
KEY_STATUS = {
    "live": Q(revoked_at__isnull=True) & ~(_EXPIRED & Q(expires_at__isnull=False)),
    "revoked": Q(revoked_at__isnull=False),
    "expired": Q(revoked_at__isnull=True) & _EXPIRED,
}


@admin.register(ApiKey)
class ApiKeyAdmin(RecordAdmin):
    """A key is made here and shown once; afterwards it is replaced or revoked. Its hash is on no page."""

    list_display = ("name", "prefix", link("account"), "outcome_source", "scope_words", "status", "last_used_at")
    list_filter = (KeyStatus, "outcome_source", "account")
    list_select_related = ("account",)
    search_fields = ("name", "prefix", "account__slug")
    autocomplete_fields = ("account",)
    actions = ("rotate", "revoke")
    id_columns = ("pk", "account")
    related = (Related(model=Interaction, by="api_key"),)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Revoking is the one change there is."""
        return super().has_change_permission(request)

    def has_rotate_permission(self, request: HttpRequest) -> bool:
        """Rotating ends one key and makes another."""
        return self.has_revoke_permission(request) and self.has_add_permission(request)

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        own = ("account", "name", "outcome_source", "scopes", "expires_at")
        return (*own, "prefix", "status", "revoked_at", "last_used_at", "id", "created_at", "links") if obj else own

    def get_form(self, request: HttpRequest, obj: Model | None = None, change: bool = False, **kwargs: Any) -> Any:
        return super().get_form(request, obj, change, **({} if obj else {"form": NewKeyForm}), **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Makes the key; the next page shows its secret, the only time that it is known."""
        chosen = form.cleaned_data
        made = create_key(
            chosen["account"],
            name=chosen["name"],
            source=chosen["outcome_source"],
            scopes=chosen["scopes"],
            expires_at=chosen["expires_at"],
            by=actor_of(request),
        )
        obj.pk, obj.prefix, obj._state.adding, obj.made = made.key.pk, made.key.prefix, False, made

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """The secret in the answer itself: a message would keep it in a cookie or in the session."""
        return self._shown(request, [obj.made])

    def _shown(self, request: HttpRequest, made: Sequence[NewKey]) -> TemplateResponse:
        context = {**self.admin_site.each_context(request), "opts": self.opts, "title": "New keys", "made": made}
        return TemplateResponse(request, "admin/new_keys.html", context)

    @admin.display(description="Scopes")
    def scope_words(self, key: ApiKey) -> str:
        return ", ".join(key.scopes)

    @admin.display(description="Status")
    def status(self, key: ApiKey) -> str:
        if key.revoked_at is not None:
            return "revoked"
        return "live" if is_live(key, timezone.now()) else "expired"

    @admin.action(description="Revoke the selected keys", permissions=["revoke"])
    def revoke(self, request: HttpRequest, keys: QuerySet[Any]) -> HttpResponse | None:
        """Ends keys at once; one that is revoked already keeps its time."""
        if isinstance(choices := ask(self, request, keys, REVOKE), TemplateResponse):
            return choices
        taken = list(keys[:AT_ONCE])
        ended = [key for key in taken if revoke(key.pk, by=actor_of(request))]
        for key in ended:
            self.log_change(request, key, "Revoked.")
        self.message_user(request, f"Revoked: {len(ended)} of {len(taken)}. A revoked key stops working at once.")
        return None

    @admin.action(description="Rotate the selected keys", permissions=["rotate"])
    def rotate(self, request: HttpRequest, keys: QuerySet[Any]) -> HttpResponse | None:
        """Replaces keys by others that may do the same, and shows the new secrets."""
        if isinstance(choices := ask(self, request, keys, ROTATE), TemplateResponse):
            return choices
        grace, days = timedelta(hours=int(choices["grace"])), choices["days"]
        expires_at = timezone.now() + timedelta(days=days) if days else None
        made = []
        for key in keys[:AT_ONCE]:
            try:
                made.append(rotate(key.pk, by=actor_of(request), grace=grace, expires_at=expires_at))
            except Conflict as refusal:
                self.message_user(request, refusal.detail, messages.ERROR)
            else:
                self.log_change(request, key, f"Rotated: {made[-1].key.prefix} takes its place.")
        return self._shown(request, made)
