// Package recovery counts the fate of packet-ins, and keeps those that are with
// stages in other processes, in memory that outlives the process: the next one
// handles or counts what a killed one left.
//
// Only services/southbound and the packages below it import it.
package recovery
