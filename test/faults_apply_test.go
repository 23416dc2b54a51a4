package test

import (
	"context"
	"testing"
	"time"

	"github.com/weft-sdn/weft/plan"
)

// applied moves a controller from plan to plan under load: services move,
// replicas come and go, every transport is exchanged for every other. The
// switches' connections last, and no process is up that is not.
func (f *faults) applied(t *testing.T) {
	d := f.deploy(t, "name: one\nworkers:\n  all: {services: [southbound, discovery, hosts, paths, forwarding, flowrules, stats, gateway]}\n", "--set", patientLinks)
	l := d.network("ring:4")
	source := d.connect()
	e := d.establish(l)
	steps := []string{"split", "scale", "single"}
	for _, transport := range append(plan.Transports(), plan.GRPC) {
		steps = append(steps, d.write(transport+".yaml", fourWorkers(transport, transport)))
	}
	for _, step := range append(steps, "single") {
		load := d.load(source)
		time.Sleep(300 * time.Millisecond)
		began := time.Now()
		if _, err := d.command(context.Background(), "apply", step, "--wait", "30s"); err != nil {
			t.Fatalf("%v\n%s", err, d.logs())
		}
		took := time.Since(began)
		time.Sleep(300 * time.Millisecond)
		a := load.end()
		t.Logf("%s applied in %v: %d sent, %d answered, %d shed%s, %d lost, longest delay %v",
			step, took.Round(time.Millisecond), len(a.messages), a.answered, a.shed, a.reasons, a.lost, a.longest().Round(time.Millisecond))
		if err := source.Err(); err != nil {
			t.Fatalf("a switch has lost its connection: %v", err)
		}
	}
	eventually(t, "one worker and one process at the end", func() bool { // the others are ending
		return len(d.allUp().Workers) == 1 && len(d.pids()) == 1
	})
	pingAll(t, l, false)
	e.undisturbed(t)
}
