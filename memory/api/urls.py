"""The agents' API, version 1."""

from django.urls import path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from memory.api.views import lessons, loop

urlpatterns = [
    path("interactions/", loop.InteractionsView.as_view(), name="interactions"),
    path("interactions/<uuid:pk>/", loop.InteractionView.as_view(), name="interaction"),
    path("interactions/<uuid:pk>/outcomes/", loop.InteractionOutcomesView.as_view(), name="interaction-outcomes"),
    path("outcomes/", loop.OutcomesView.as_view(), name="outcomes"),
    path("retrieve/", loop.RetrieveView.as_view(), name="retrieve"),
    path("lessons/", lessons.LessonsView.as_view(), name="lessons"),
    path("lessons/<uuid:pk>/", lessons.LessonView.as_view(), name="lesson"),
    path("lessons/<uuid:pk>/evidence/", lessons.LessonEvidenceView.as_view(), name="lesson-evidence"),
    path("lessons/<uuid:pk>/history/", lessons.LessonHistoryView.as_view(), name="lesson-history"),
    path("lessons/<uuid:pk>/neighbours/", lessons.LessonNeighboursView.as_view(), name="lesson-neighbours"),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="docs"),
]
