"""How a person likes the pages."""

from typing import TYPE_CHECKING

from django import forms

from review.models import Digest, Look

if TYPE_CHECKING:
    Base = forms.ModelForm[Look]
else:
    Base = forms.ModelForm


class LookForm(Base):
    """Theme, density, whether single keys do anything, and how often a mail says what waits."""

    digest = forms.ChoiceField(choices=Digest.choices, widget=forms.RadioSelect, required=False)

    class Meta:
        model = Look
        fields = ("theme", "density", "keys", "digest")
        widgets = {"theme": forms.RadioSelect, "density": forms.RadioSelect, "digest": forms.RadioSelect}
