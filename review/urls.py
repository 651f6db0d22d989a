"""The addresses of the review pages."""

from django.urls import path

from review.views import deciding, keys, lesson

app_name = "review"
urlpatterns = [
    path("keys/", keys.sheet, name="keys"),
    path("decide/", deciding.decide, name="decide"),
    path("decide/<str:verdict>/", deciding.ask, name="ask"),
    path("undo/", deciding.undo, name="undo"),
    path("lessons/", lesson.index, name="lessons"),
    path("lessons/<uuid:lesson_id>/", lesson.detail, name="lesson"),
]
