"""A support desk, eighty cases that hold it to what it promises, and defects that they find.

`shop` is what the desk works on, `literal_model` the model, `desk` the pipeline and `defects` what
can be wrong with it; `cases` and `cases.yaml` are the cases, `suite` is what is run::

    adk-fluent eval run examples/support_desk/suite.py
"""

from __future__ import annotations
