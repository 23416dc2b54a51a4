// Package planner is the commands that read, check, make, compare and apply plans, and
// issue the certificates that a plan needs.
//
// Only cmd/weft and its packages import it.
package planner
