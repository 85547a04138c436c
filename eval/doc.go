// Package eval measures recommenders: prediction errors (RMSE, MAE), rankings
// (recall, precision, NDCG, hit rate, coverage) and the gap between train and
// test that hints at memorised ratings (KLGauge).
//
// Everything runs on all processors, in blocks of users whose sums are added in
// the order of the users, so a result has the same bits for any number of
// workers. Memory grows with users/256 and with items per worker, never with
// users × items.
package eval
