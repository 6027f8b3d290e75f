"""Enumerates the SDK's public API, and watches which part of it the scenes use."""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
from collections.abc import Iterator
from typing import Any

import kubeflow.trainer as trainer
import kubeflow.trainer.options as options

# Names of the package that the scenes need not use, and why.
EXEMPT = {
    "ContainerBackendConfig": "runs no Kubernetes",
    "LocalProcessBackendConfig": "runs no Kubernetes",
    "TrainingRuntimeSource": "is read by the container backend only",
    "Event": "is returned",
    "Runtime": "is returned",
    "RuntimeTrainer": "is returned",
    "RuntimeKind": "is returned",
    "TrainerType": "is returned",
    "TrainJobTemplate": "is read by the OptimizerClient only",
    "DATASET_PATH": "is a path inside a training",
    "MODEL_PATH": "is a path inside a training",
}

used: set[str] = set()


def _methods() -> Iterator[str]:
    return (name for name, _ in inspect.getmembers(trainer.TrainerClient, inspect.isfunction) if name[0] != "_")


def _classes() -> dict[str, type]:
    """Return the public classes whose fields a user fills."""
    found = {}
    for package in (trainer, options):
        for name in package.__all__:
            value = getattr(package, name)
            if inspect.isclass(value) and dataclasses.is_dataclass(value) and name not in EXEMPT:
                found[name] = value
    return found


def everything() -> set[str]:
    """Return each method with its parameters, each class with its fields, and each function."""
    names = set()
    for method in _methods():
        parameters = inspect.signature(getattr(trainer.TrainerClient, method)).parameters
        names |= {f"TrainerClient.{method}({name})" for name in parameters if name != "self"}
        names.add(f"TrainerClient.{method}")
    for name, kind in _classes().items():
        names.add(name)
        names |= {f"{name}.{field.name}" for field in dataclasses.fields(kind) if field.init}
    for name in trainer.__all__ + options.__all__:
        if name not in EXEMPT:
            names.add(name)
    return names


def watch() -> None:
    """Have methods, classes and functions note when they are used, and with which arguments."""
    for method in _methods():
        _wrap_method(method)
    for name, kind in _classes().items():
        _wrap_class(name, kind)


def _wrap_method(name: str) -> None:
    original = getattr(trainer.TrainerClient, name)
    signature = inspect.signature(original)

    @functools.wraps(original)
    def noting(*args, **kwargs):
        used.update({"TrainerClient", f"TrainerClient.{name}"})
        passed = signature.bind_partial(*args, **kwargs).arguments
        used.update(f"TrainerClient.{name}({argument})" for argument in passed if argument != "self")
        return original(*args, **kwargs)

    setattr(trainer.TrainerClient, name, noting)


def _wrap_class(name: str, kind: type) -> None:
    original = vars(kind)["__init__"]
    signature = inspect.signature(original)

    @functools.wraps(original)
    def noting(*args, **kwargs):
        used.add(name)
        passed = signature.bind_partial(*args, **kwargs).arguments
        used.update(f"{name}.{field}" for field in passed if field != "self")
        used.update(type(value).__name__ for value in passed.values() if isinstance(value, enum.Enum))
        original(*args, **kwargs)

    setattr(kind, "__init__", noting)  # noqa: B010 - a type checker allows no other way


def public(name: str) -> Any:
    """Return a function or a class that cannot be watched, and note that it is used."""
    used.add(name)
    return getattr(trainer, name)


def missing() -> list[str]:
    """Return what no scene used."""
    return sorted(everything() - used)
