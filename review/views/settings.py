"""How a person likes the pages, and their password; their own only."""

from django.contrib import messages
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.views import PasswordChangeView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse, reverse_lazy
from django.views.decorators.http import require_http_methods

from review import digest
from review.access import page, person_of
from review.forms.look import LookForm
from review.models import Look


@require_http_methods(["GET", "HEAD", "POST"])
@page()
def settings(request: HttpRequest) -> HttpResponse:
    """The form; a first visit writes nothing."""
    who = person_of(request)
    look = Look.objects.filter(user=who.user_id).first() or Look(user_id=who.user_id)
    form = LookForm(request.POST or None, instance=look)
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, "Saved.")
        # The frame, which carries the theme, comes anew only with a whole page.
        return HttpResponseRedirect(reverse("review:settings"))
    context = {"form": form, "who": who, "mail": {"on": digest.is_on(), "address": look.user.email}}
    return render(request, "review/settings.html", context, status=422 if form.errors else 200)


class Password(PasswordChangeView):
    """A new password; the old one is asked for, and other sessions of the person end."""

    template_name = "review/password.html"
    success_url = reverse_lazy("review:settings")

    def form_valid(self, form: PasswordChangeForm) -> HttpResponse:
        messages.success(self.request, "Your password is changed.")
        return super().form_valid(form)
