"""How a person likes the pages."""

from typing import TYPE_CHECKING

from django import forms

from review.models import Look

if TYPE_CHECKING:
    Base = forms.ModelForm[Look]
else:
    Base = forms.ModelForm


class LookForm(Base):
    """Theme, density, and whether single keys do anything."""

    class Meta:
        model = Look
        fields = ("theme", "density", "keys")
        widgets = {"theme": forms.RadioSelect, "density": forms.RadioSelect}
