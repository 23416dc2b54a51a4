package test

import "testing"

// TestTrust checks what the controller promises when a disk, a server, a switch,
// a client or a host does not behave. Every subtest is a class of faults that
// was once found by attacking a running controller.
func TestTrust(t *testing.T) {
	t.Parallel()
	f := newFaults(t)
	for _, s := range []struct {
		name string
		run  func(*testing.T, *faults)
	}{
		{"1-replicas", trustReplica},
		{"3-plans", trustPlans},
		{"4-counted", trustCounted},
		{"5-handshake", trustHandshake},
		{"6-square", trustSquare},
		{"7-squat", trustSquat},
		{"2-damaged-store", trustDamagedStore},
		{"8-northbound", trustNorthbound},
		{"9-root", trustRoot},
		{"9-root-user", trustUser},
		{"9-root-apps", trustOwn},
		{"10-relay", trustLinks},
		{"11-hosts", trustHosts},
		{"12-second-topology", trustSecond},
		{"13-damping", trustDamping},
		{"14-lab", trustLab},
		{"17-said-early", trustSaidEarly},
		{"15-apps", trustApps},
		{"16-limiter", trustLimiter},
		{"18-flowfile", trustFlowFile},
		{"19-first-day", trustFirstDay},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.run(t, f)
		})
	}
}
