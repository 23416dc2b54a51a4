// Package httpload loads HTTP servers, over HTTP/2 with prior knowledge, HTTP/1.1
// or TLS: in a closed loop, which asks again when it is answered, or in an open
// one, whose requests are due at times that do not depend on answers. What it
// measures of an open loop counts from when a request was due, so that a server
// that stops does not stop the clock, too (coordinated omission).
//
// The command weft bench http, experiments and the simulated 5G core import it.
package httpload
