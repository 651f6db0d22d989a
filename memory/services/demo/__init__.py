"""A store to look at: lessons good and bad, work that shows which is which, and people who decided about some.

It is a story of the last three months that is told afterwards, through the services that agents and people use: what
is quarantined here was quarantined by the policy in force. Every step looks at what is stored before it acts, so an
interrupted run goes on where it stopped and a second run changes nothing.
"""
