"""Which pieces of a change are taken back: code, hunk by hunk, and never tests or words."""

from __future__ import annotations

from legion.domain.review import diffs
from legion.domain.review.weakened_tests import new_tests, revertable_hunks

CHANGE = """\
diff --git a/docs/a.md b/docs/a.md
--- a/docs/a.md
+++ b/docs/a.md
@@ -1 +1 @@
-old
+new
diff --git a/src/a.py b/src/a.py
--- a/src/a.py
+++ b/src/a.py
@@ -3,0 +4,2 @@
+def two():
+    return 2
@@ -9 +11,0 @@
-    return 1
@@ -20,0 +22,2 @@
+# a remark
+
diff --git a/tests/test_a.py b/tests/test_a.py
new file mode 100644
--- /dev/null
+++ b/tests/test_a.py
@@ -0,0 +1 @@
+assert two() == 2
diff --git a/tests/test_b.py b/tests/test_b.py
deleted file mode 100644
--- a/tests/test_b.py
+++ /dev/null
@@ -1 +0,0 @@
-assert True
"""


def test_only_hunks_of_code_are_taken_back():
    found = revertable_hunks(diffs.read(CHANGE))
    assert [(one.path, one.line, one.lines) for one in found] == [("src/a.py", 4, 2), ("src/a.py", 11, 1)]
    assert found[0].patch.startswith("diff --git a/src/a.py")
    assert found[0].patch.endswith("+    return 2\n")


def test_new_tests_are_those_that_the_change_adds():
    assert new_tests(diffs.read(CHANGE), ()) == ("tests/test_a.py",)
