// Package sbi is the vocabulary of the service-based interface of a 5G core, as
// far as Weft speaks it: profiles of network functions, how they are registered
// and subscribed to and how they are discovered at the NRF (TS 29.510), and the
// problems that requests end with (TS 29.500, TS 29.571). All of it is plain
// values and pure functions; whoever serves or proxies that interface imports
// it, and it imports nothing of this module.
//
// Members that it has no name for are kept: see Unknown.
package sbi
