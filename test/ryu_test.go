package test

import (
	"testing"

	"github.com/weft-sdn/weft/lab"
)

// ryuSpec is the network of the tests of Ryu's REST.
const ryuSpec = "linear:2"

// startREST runs a controller with Ryu's REST; it returns where that answers.
func startREST(t *testing.T, o options) (*controller, string) {
	t.Helper()
	address := freeAddress(t)
	o.set = append(o.set, "ryu.listen="+address)
	return start(t, o), address
}

// upFor brings a lab up for a controller that is not ours.
func upFor(t *testing.T, spec, address string) *lab.Lab {
	t.Helper()
	return up(t, spec, &controller{t: t, address: address})
}

// TestRyu makes the requests of Ryu's documentation, and compares every answer
// with what Ryu has answered for a network alike: field by field, but for what
// ryuVarying lists. With -ryu it asks Ryu now.
func TestRyu(t *testing.T) {
	t.Parallel()
	requests := ryuRequests(t, "requests.txt")
	var want []ryuAnswer
	if *ryuDirectory != "" {
		openflow := freeAddress(t)
		address := startRyu(t, openflow, "ryu.app.ofctl_rest", "ryu.app.rest_conf_switch")
		upFor(t, ryuSpec, openflow)
		knowsSwitches(t, address, 2)
		for i := range requests {
			a, _ := requests[i].ask(t, address)
			want = append(want, a)
		}
		if *ryuRecord {
			ryuKeep(t, "rest", want)
		}
	} else {
		want = ryuRecorded(t)["rest"]
	}
	if len(want) != len(requests) {
		t.Fatalf("%d requests, %d answers of Ryu: run make ryu-parity RECORD=1", len(requests), len(want))
	}
	c, address := startREST(t, options{only: []string{"southbound", "flowrules", "ryu"}})
	up(t, ryuSpec, c)
	knowsSwitches(t, address, 2)
	for i := range requests {
		a, _ := requests[i].ask(t, address)
		ryuJudge(t, &requests[i], a, want[i])
	}
}
