"""What the review pages remember of a person: how they like the pages, when they looked, what mail they want."""

from django.conf import settings
from django.db import models


class Theme(models.TextChoices):
    AUTO = "auto", "As the device"
    LIGHT = "light", "Light"
    DARK = "dark", "Dark"


class Density(models.TextChoices):
    COMFORTABLE = "comfortable", "Comfortable"
    COMPACT = "compact", "Compact"


class Digest(models.TextChoices):
    NONE = "none", "Never"
    DAILY = "daily", "Daily"
    WEEKLY = "weekly", "Weekly"


class Look(models.Model):
    """How one person likes the pages."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="+")
    theme = models.CharField(max_length=5, choices=Theme.choices, default=Theme.AUTO)
    density = models.CharField(max_length=11, choices=Density.choices, default=Density.COMFORTABLE)
    keys = models.BooleanField(default=True, help_text="Single-key shortcuts (WCAG 2.1.4).")
    last_visit = models.DateTimeField(null=True, blank=True)
    digest = models.CharField(max_length=6, choices=Digest.choices, default=Digest.NONE)
    digest_sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "review_look"

    def __str__(self) -> str:
        return f"{self.theme}, {self.density}"
