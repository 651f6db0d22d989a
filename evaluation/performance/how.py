"""What the page says about how its numbers came to be."""

from typing import Final

from evaluation.performance.timing import ROUNDS

HOW: Final = f"""\
## How it was measured

`make bench` builds a store of synthetic lessons for each size in a database of its own, with usage rows, credits and
sums, and one lesson in twenty quarantined. Texts follow Zipf's law; vectors have the spread and the local dimension of
real lessons (`evaluation/performance/corpus.py`). Both sides of a ratio run in turns in one process and, but for HTTP,
on one connection: {ROUNDS} rounds after a warm-up, each with another task. numpy and the embedding model use one
thread. Times are medians, brackets hold 95% bootstrap intervals. Absolute times depend on the machine and on what else
it does, ratios hardly. The raw top 20 searches with the same effort (`hnsw.ef_search`) as ours. Bars of speed are
judged from 10,000 lessons up: in a tiny store a statement costs little but its fixed part.

Recall and precision compare with exact search over the same rows. Words are ranked by the sum of their inverse
document frequencies, BM25 with k1 = 0: normalising by length, as BM25's usual constants do, costs recall on real
lessons, which are one sentence each. So two precisions are given: one says how far the order is from the usual BM25's,
the other what bounding the work loses. In the replay that HTTP is compared with, psycopg runs each statement of the
same request with the same parameters, new ids for new rows, in one transaction. Embedding and replay are timed each by
itself, on warm memory, and added: one right after the other takes longer than the two, which would flatter us.

A plan of near-duplicates is made in stores of which one lesson in twenty nearly repeats another, with cosines from
0.89 to 0.999. It does more than its floors, which only find pairs: it reads the claims of both texts, weighs the
evidence, and writes the plan down. Up to 10,000 lessons each side has a few rounds, at 100,000 two, and comparing all
one. The index alone is one statement on one core. Memory is the peak of a process that makes one plan and ends.

A piece of work is written by the services as in the product: the interaction with its exposures, the report, the
credit with its judgement of five lessons, three transactions that each wait for the disk. Only the search is left out:
what it would find was found before. psycopg runs the same statements in the same transactions. Then 16 writers, each
on its own connection, hand out the same few lessons over and over; what they did is compared with what is credited,
and every sum with a rebuild.

Peers hold the same lessons with the same vectors, on the same machine and, for LangGraph, on the same server; `make
bench-peers` installs and measures them in an environment of their own. The search of vectors alone has our filter of
state and scope on our side and none on theirs. It is judged at the effort that a peer comes with if that finds 0.95 of
the exact nearest 20, else at ours. Their own filters of metadata are told apart: dropping what is quarantined from a
longer answer is faster, so that is what their whole job does. The whole job is what their user has to put together: 60
lessons by meaning, 40 by words from an index beside the store, both fused, a threshold, variety where the store gives
vectors back, and the interaction with five exposures written durably. What they do not do, and ours does within the
same time: read the evidence of each candidate, weigh how well the store supports the task, keep contradictions apart,
toss the coins of trial and probation, note what quarantine kept out, and do all of it in one transaction. Whole jobs
are judged at 100,000 lessons: in small stores a library with a file needs no server, and is faster. Neither peer has a
search by words in this setting, a credit, or a quarantine; LangGraph gives no vectors back, so its answers have no
variety and lessons found by words alone no threshold.

The review pages are looked at in a store of 10,000 lessons and 100,000 servings of its own, with over 5,000 questions
and as many decisions of long ago, in one process and without the network: the result is the time within which 95 of
100 looks and decisions were done, "our ms" their median. A decision is sent, carried out, and answered with the next
question. Files of everything have no bar.

A run replaces what it measured and keeps the rest, which `performance.json` has with its times and machines.
"""
