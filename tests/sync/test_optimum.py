"""Known optima: a9a with L2 and L1 (liblinear's), Strads' lasso."""
from optimum import finish, law, need, train

a9a, X, Y = need("a9a/a9a.gz", "strads-lasso/lasso500by1K.X.mmt.gz", "strads-lasso/lasso500by1K.Y.mmt.gz")


@law
def a9a_l2_is_within_1e_4_in_100_epochs():
    r = train(a9a, "--model", "logistic", "--optimizer", "sgd", "--no-intercept", "--l2", 1,
              "--penalty-on", "sum", "--epochs", 100)
    gap = r["objective"] * r["rows"] / 10529.56258 - 1
    assert -1e-7 < gap < 1e-4, gap
    return "gap %.2g" % gap


@law
def a9a_l1_is_within_1e_4_in_100_epochs():
    r = train(a9a, "--model", "logistic", "--optimizer", "sgd", "--no-intercept", "--l1", 1,
              "--penalty-on", "sum", "--epochs", 100)
    gap = r["objective"] * r["rows"] / 10558.72337 - 1
    assert -1e-7 < gap < 1e-4, gap
    return "gap %.2g, %d non-zeros (liblinear: 97)" % (gap, r["weights_nonzero"])


LASSO = [X, "--format", "mtx", "--labels", Y, "--model", "squared", "--no-intercept", "--l1", 0.001,
         "--penalty-on", "sum"]


@law
def strads_lasso_by_sgd_is_within_1e_2():
    r = train(*LASSO, "--optimizer", "sgd", "--epochs", 3000)
    gap = r["objective"] * r["rows"] / 0.037202963904 - 1
    assert -1e-7 < gap < 1e-2, gap
    return "gap %.2g" % gap


@law
def strads_lasso_by_batch_is_within_1e_6():
    r = train(*LASSO, "--sync", "batch", "--epochs", 3500)
    gap = r["objective"] * r["rows"] / 0.037202963904 - 1
    assert -1e-7 < gap < 1e-6, gap
    return "gap %.2g, %d non-zeros (472)" % (gap, r["weights_nonzero"])


finish()
