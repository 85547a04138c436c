// Package privacy holds everything that decides what a trained model tells
// about the people behind the ratings: budgets, the accountant, the noise, and
// the ledger that every release is written into.
//
// A trainer works in four steps.
//
//  1. It turns a Budget into noise scales (Calibrate, or DPALSPlan.Calibrate).
//  2. It opens a Ledger that names the unit of protection, and a Noise.
//  3. Whenever something computed from ratings is to leave it, it adds noise
//     from a Stream of its own and records the Release.
//  4. It seals the ledger. ε is computed from the ledger, never from the
//     configuration.
//
// Gaussian releases are accounted for exactly (as μ-GDP, without Rényi orders or
// loss distributions), and every computed ε and δ lies on the safe side of its
// rounding error.
package privacy
