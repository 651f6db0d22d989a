import traceback, pytest
from django.http import HttpRequest
@pytest.mark.django_db
def test_big(agent, monkeypatch):
    body = type(HttpRequest.body)
    orig = HttpRequest.body.fget
    def b(self):
        try: return orig(self)
        except Exception: traceback.print_stack(limit=14); raise
    monkeypatch.setattr(HttpRequest, 'body', property(b))
    r = agent.client.post('/api/v1/retrieve/', data='{"task":"%s"}' % ('x'*1100000), content_type='application/json')
    print(r.status_code, r.content[:200])
    assert 0
