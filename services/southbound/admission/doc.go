// Package admission decides what switches may take of the controller: which
// switches belong to a partition, how much memory they may hold, which
// packet-ins of a port that floods are handled, and which flow entries an app
// may replace. It does no I/O.
//
// Only services/southbound and the packages below it import it.
package admission
