"""The project's C++ rules: the native ones with the one warning list."""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library", "cc_test")

# The one warning list. A warning is an error everywhere, CI or not.
WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wshadow",
    "-Werror",
]

def vs_library(name, copts = [], **kwargs):
    cc_library(name = name, copts = WARNINGS + copts, **kwargs)

def vs_binary(name, copts = [], **kwargs):
    cc_binary(name = name, copts = WARNINGS + copts, **kwargs)

def vs_test(name, deps = [], copts = [], size = "small", **kwargs):
    """A gtest beside the code: NAME.cc unless srcs are given."""
    kwargs.setdefault("srcs", [name + ".cc"])
    cc_test(
        name = name,
        copts = WARNINGS + copts,
        size = size,
        deps = deps + ["//third_party:gtest_main"],
        **kwargs
    )

def vs_benchmark(name, deps = [], **kwargs):
    """A micro-benchmark beside the code; built with the tests, run by hand."""
    cc_binary(
        name = name,
        srcs = [name + ".cc"],
        copts = WARNINGS,
        testonly = True,
        deps = deps + ["//third_party:benchmark_main"],
        **kwargs
    )
