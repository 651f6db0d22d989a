"""Accounts, projects, memberships and API keys: what an operator sets up."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Model, Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils import timezone

from memory.admin.base import RecordAdmin, Related, link
from memory.models import Account, ApiKey, Interaction, Lesson, Membership, Preference, Project, Session, Task
from memory.services.keys import SCOPES, create_key


@admin.register(Account)
class AccountAdmin(RecordAdmin):
    list_display = ("slug", "name", "review_policy", "created_at")
    list_filter = ("review_policy",)
    search_fields = ("slug", "name")
    ordering = ("slug",)
    readonly_fields = ("id", "created_at", "links")
    related = tuple(
        Related(model=model, by="account")
        for model in (Project, ApiKey, Membership, Interaction, Lesson, Preference, Session, Task)
    )

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        own = ("slug", "name", "review_policy")
        return (*own, "id", "created_at", "links") if obj else own


@admin.register(Project)
class ProjectAdmin(RecordAdmin):
    """The slug stays as it is: preferences name their project by it."""

    list_display = ("slug", link("account"), "name", "created_at")
    list_filter = ("account",)
    list_select_related = ("account",)
    search_fields = ("slug", "name", "account__slug")
    ordering = ("account__slug", "slug")
    autocomplete_fields = ("account",)
    id_columns = ("pk", "account")
    related = (Related(model=Interaction, by="project"), Related(model=Session, by="project"))

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        own = ("account", "slug", "name")
        return (*own, "id", "created_at", "links") if obj else own

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        return ("account", "slug", "id", "created_at", "links") if obj else ()


@admin.register(Membership)
class MembershipAdmin(RecordAdmin):
    """What a person may do can be taken away; what they did stays."""

    deletable = True
    list_display = ("user", link("account"), "role", "created_at")
    list_filter = ("role", "account")
    list_select_related = ("account", "user")
    search_fields = ("user__username", "account__slug")
    autocomplete_fields = ("account", "user")
    id_columns = ("pk", "account")


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


_EXPIRED = Q(expires_at__lte=Now())
KEY_STATUS = {
    "live": Q(revoked_at__isnull=True) & ~(_EXPIRED & Q(expires_at__isnull=False)),
    "revoked": Q(revoked_at__isnull=False),
    "expired": Q(revoked_at__isnull=True) & _EXPIRED,
}


@admin.register(ApiKey)
class ApiKeyAdmin(RecordAdmin):
    """A key is made here and shown once; afterwards it can only be revoked. Its hash is on no page."""

    list_display = ("name", "prefix", link("account"), "outcome_source", "scope_words", "status", "last_used_at")
    list_filter = (KeyStatus, "outcome_source", "account")
    list_select_related = ("account",)
    search_fields = ("name", "prefix", "account__slug")
    autocomplete_fields = ("account",)
    actions = ("revoke",)
    id_columns = ("pk", "account")
    related = (Related(model=Interaction, by="api_key"),)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Revoking is the one change there is."""
        return super().has_change_permission(request)

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        own = ("account", "name", "outcome_source", "scopes", "expires_at")
        return (*own, "prefix", "status", "revoked_at", "last_used_at", "id", "created_at", "links") if obj else own

    def get_form(self, request: HttpRequest, obj: Model | None = None, change: bool = False, **kwargs: Any) -> Any:
        return super().get_form(request, obj, change, **({} if obj else {"form": NewKeyForm}), **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Makes the key and shows its secret in the message on the next page, the only time that it is known."""
        chosen = form.cleaned_data
        made = create_key(
            chosen["account"],
            name=chosen["name"],
            source=chosen["outcome_source"],
            scopes=chosen["scopes"],
            expires_at=chosen["expires_at"],
        )
        obj.pk, obj.prefix, obj._state.adding = made.key.pk, made.key.prefix, False
        told = f"Keep this key now; only its hash is stored, and it is never shown again: {made.secret}"
        self.message_user(request, told, messages.WARNING)

    @admin.display(description="Scopes")
    def scope_words(self, key: ApiKey) -> str:
        return ", ".join(key.scopes)

    @admin.display(description="Status")
    def status(self, key: ApiKey) -> str:
        if key.revoked_at is not None:
            return "revoked"
        return "expired" if key.expires_at is not None and key.expires_at <= timezone.now() else "live"

    @admin.action(description="Revoke the selected keys", permissions=["revoke"])
    def revoke(self, request: HttpRequest, keys: QuerySet[Any]) -> None:
        """Ends keys at once; one that is revoked already keeps its time."""
        ended = list(keys.filter(revoked_at__isnull=True))
        ApiKey.objects.filter(pk__in=[key.pk for key in ended], revoked_at__isnull=True).update(revoked_at=Now())
        for key in ended:
            self.log_change(request, key, "Revoked.")
        self.message_user(request, f"Revoked: {len(ended)} of {len(keys)}. A revoked key stops working at once.")
