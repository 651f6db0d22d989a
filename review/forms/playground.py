"""What the retrieval playground is asked."""

from django import forms

LONGEST = 4000  # characters of a task that is tried out


class PlaygroundForm(forms.Form):
    """A look-up; everything but the task has a default."""

    q = forms.CharField(label="Task", max_length=LONGEST)
    date = forms.DateField(label="As of", required=False)
    k = forms.IntegerField(label="At most", min_value=1, max_value=50, required=False)
    probation = forms.BooleanField(label="With lessons on probation", required=False)
    quarantined = forms.BooleanField(label="With all quarantined lessons", required=False)
