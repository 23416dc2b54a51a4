// Package testwait is how tests wait: for a sign, however long a busy machine takes
// to give it. Only a test that fails waits for Limit.
//
// Tests and wefttest import it, nothing else does. It imports only the standard library.
package testwait

import (
	"testing"
	"time"
)

// Limit is how long a test waits for what is to come.
const Limit = 2 * time.Minute

// Until waits until something holds, and fails the test if it does not.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(Limit); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", Limit, what)
		}
	}
}
