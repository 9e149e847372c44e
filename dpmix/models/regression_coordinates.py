"""Coordinates in which the parameters of a linear regression move, and what the joint move learns of them.

The coordinates are beta, the log of the errors' sd, x_mean, and the lower factor of x_cov with the logs of
its diagonal, those of them that are not known. In burn-in the joint move (`dpmix.models.regression_joint`)
learns their mean and covariance, and which records are near the bounds.
"""

from __future__ import annotations

import math

import numpy as np

from dpmix._jit import njit
from dpmix.models.factors import cholesky, invert_lower
from dpmix.models.moments import COV, MEAN, SD

__all__ = [
    "ACCEPTED",
    "ACTIVE",
    "HEAD",
    "LEARNING",
    "MADE",
    "NEAR",
    "SEEN",
    "coordinates",
    "learn",
    "learnt_room",
    "log_prior",
    "pack",
    "unpack",
]

ACTIVE, LEARNING, SEEN, ACCEPTED, MADE, NEAR, HEAD = 0, 1, 2, 3, 4, 5, 6  # places of `Line.learnt`
FORGET = 400.0  # states over which averages are taken


@njit
def coordinates(model):
    """Return how many coordinates are unknown of beta, log sd, x_mean, x_root with a log diagonal."""
    q = len(model.columns)
    p = q - 1
    count = q
    if not model.known[SD]:
        count += 1
    if not model.known[MEAN]:
        count += p
    if not model.known[COV]:
        count += p * (p + 1) // 2
    return count


@njit
def learnt_room(model):
    """Return `Line.learnt` before anything is learnt: steps of prior standard deviations, or 1."""
    q = len(model.columns)
    p = q - 1
    k = coordinates(model)
    learnt = np.zeros(HEAD + k + 2 * k * k)
    learnt[ACTIVE] = 1.0
    learnt[SEEN] = 10.0
    learnt[NEAR] = 0.8
    mean = learnt[HEAD : HEAD + k]
    for i in range(q):
        mean[i] = model.beta_mean[i]
    at = q
    if not model.known[SD]:
        mean[at] = 0.5 * math.log(model.scale / model.shape)
        at += 1
    if not model.known[MEAN]:
        for i in range(p):
            mean[at + i] = model.centre[i]
        at += p
    if not model.known[COV]:
        for i in range(p):
            for j in range(i + 1):
                if i == j:
                    mean[at] = 0.5 * math.log(model.psi[i * p + i] / model.freedom)
                at += 1
    covariance = learnt[HEAD + k : HEAD + k + k * k].reshape(k, k)
    for i in range(k):
        covariance[i, i] = 1.0 / model.beta_precision[i] if i < q else 1.0
    at = q + (0 if model.known[SD] else 1)
    if not model.known[MEAN]:
        for i in range(p):
            covariance[at + i, at + i] = model.psi[i * p + i]
        at += p
    if not model.known[COV]:
        for i in range(p):
            for j in range(i + 1):
                covariance[at, at] = 1.0 if i == j else model.psi[i * p + i]
                at += 1
    cholesky(covariance, learnt[HEAD + k + k * k : HEAD + k + 2 * k * k].reshape(k, k))
    return learnt


@njit
def pack(model, values, point):
    """Set the coordinates (k,) of parameters."""
    q = len(model.columns)
    p = q - 1
    for i in range(q):
        point[i] = values[i]
    at = q
    if not model.known[SD]:
        point[at] = math.log(values[q])
        at += 1
    if not model.known[MEAN]:
        for i in range(p):
            point[at + i] = values[q + 1 + i]
        at += p
    if not model.known[COV]:
        for i in range(p):
            for j in range(i + 1):
                entry = values[q + 1 + p + i * p + j]
                point[at] = math.log(entry) if i == j else entry
                at += 1


@njit
def unpack(model, point, values):
    """Set parameters from their coordinates (k,); what is known stays."""
    q = len(model.columns)
    p = q - 1
    for i in range(q):
        values[i] = point[i]
    at = q
    if not model.known[SD]:
        values[q] = math.exp(point[at])
        at += 1
    if not model.known[MEAN]:
        for i in range(p):
            values[q + 1 + i] = point[at + i]
        at += p
    if not model.known[COV]:
        for i in range(p):
            for j in range(i + 1):
                values[q + 1 + p + i * p + j] = math.exp(point[at]) if i == j else point[at]
                at += 1


@njit
def log_prior(model, values, inverse):
    """Return the log prior density of the coordinates, up to a constant; `inverse` (p, p) is scratch."""
    q = len(model.columns)
    p = q - 1
    total = 0.0
    for i in range(q):
        gap = values[i] - model.beta_mean[i]
        total -= 0.5 * model.beta_precision[i] * gap * gap
    if not model.known[SD]:
        total -= 2.0 * model.shape * math.log(values[q]) + model.scale / (values[q] * values[q])
    if model.known[MEAN] and model.known[COV]:
        return total
    root = values[q + 1 + p :].reshape(p, p)
    invert_lower(root, inverse)
    if not model.known[MEAN]:
        for i in range(p):
            gap = 0.0
            for j in range(i + 1):
                gap += inverse[i, j] * (values[q + 1 + j] - model.centre[j])
            total -= 0.5 * model.weight * gap * gap
            if not model.known[COV]:
                total -= math.log(root[i, i])
    if not model.known[COV]:
        for i in range(p):
            # inverse-Wishart, the Jacobian of root root', and that of the log of the diagonal
            total += (p - i + 1 - (model.freedom + p + 1.0)) * math.log(root[i, i])
            for j in range(i + 1):
                for k in range(i + 1):
                    total -= 0.5 * model.psi[j * p + k] * inverse[i, j] * inverse[i, k]
    return total


@njit
def learn(learnt, point, share):
    """Take mean and covariance of the coordinates (k,) one state further.

    They are over `FORGET` states, or over that share of all that were seen, where this is more.
    """
    k = len(point)
    learnt[SEEN] += 1.0
    gain = 1.0 / max(min(learnt[SEEN], FORGET), share * learnt[SEEN])
    mean = learnt[HEAD : HEAD + k]
    covariance = learnt[HEAD + k : HEAD + k + k * k].reshape(k, k)
    for i in range(k):
        for j in range(k):
            product = (1.0 - gain) * (point[i] - mean[i]) * (point[j] - mean[j])
            covariance[i, j] += gain * (product - covariance[i, j])
    for i in range(k):
        mean[i] += gain * (point[i] - mean[i])
    cholesky(covariance, learnt[HEAD + k + k * k : HEAD + k + 2 * k * k].reshape(k, k))
