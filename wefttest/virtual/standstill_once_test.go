//go:build !long

package virtual

// standstillRounds is how often each fault of TestStandstill befalls the controller.
const standstillRounds = 1
