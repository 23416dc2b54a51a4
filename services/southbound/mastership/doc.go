// Package mastership decides which process is master of a partition's switches:
// by a lease in the store, and by promises of the standbys while the store is
// away. A fence is open while the lease lasts.
//
// Only services/southbound imports it. It knows nothing of switches.
package mastership
