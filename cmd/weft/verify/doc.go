// Package verify is the command weft plan verify: what the model of weft plan
// make predicts of the plan in force, beside what a running controller is
// measured to do.
//
// Only cmd/weft and its packages import it.
package verify
