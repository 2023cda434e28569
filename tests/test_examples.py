"""Every public name has a docstring with an example; `pytest --doctest-modules` runs them."""

import doctest
import inspect
import sys

import pytest

import evband


@pytest.mark.parametrize("name", [name for name in evband.__all__ if name != "__version__"])
def test_a_public_name_has_an_example_that_is_run(name):
    thing = getattr(evband, name)
    module = sys.modules[thing.__module__]
    assert inspect.getfile(thing) == module.__file__
    found = [test for test in doctest.DocTestFinder(recurse=True).find(module) if test.examples]
    own = [test for test in found if test.name.removeprefix(f"{module.__name__}.").split(".")[0] == name]
    assert own, f"{name} has no example in its docstring"
    first = [example for test in own for example in test.examples if not example.options.get(doctest.SKIP)]
    assert first, f"every example of {name} is skipped"
