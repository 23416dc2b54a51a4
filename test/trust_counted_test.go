package test

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// trustCounted kills the process with the southbound under load, again and again:
// afterwards every packet-in that it has read is settled or counted as lost. So it
// is for a process of a plan, and for a controller of one process.
func trustCounted(t *testing.T, f *faults) {
	d := f.deploy(t, fourWorkers("grpc", "grpc"))
	var lost float64
	for range 3 {
		source := d.connect()
		load := d.load(source)
		time.Sleep(300 * time.Millisecond) // of load; how much is read does not matter
		old := d.pids()["southbound"]
		if err := syscall.Kill(d.pids()["routing"], syscall.SIGSTOP); err != nil { // packets wait for it
			t.Fatal(err)
		}
		eventually(t, 20*time.Second, "packet-ins wait", func() bool {
			now, err := d.figures()
			return err == nil && sum(now, "weft_deploy_packets_waiting") > 20
		})
		if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		load.cancel()
		<-load.sent
		source.Close()
		eventually(t, 30*time.Second, "southbound started again", func() bool { now := d.pids()["southbound"]; return now != 0 && now != old })
		d.allUp()
		now := d.settled()
		if more := sum(now, "weft_southbound_packet_ins_lost_total"); more <= lost {
			t.Errorf("%v packet-ins are counted as lost, after %v before", more, lost)
		} else {
			lost = more
		}
	}
}

// settled waits until no packet-in is being dealt with, and returns the figures
// then: what was read is settled or counted.
func (d *deployment) settled() (now map[string]float64) {
	d.t.Helper()
	eventually(d.t, 30*time.Second, "every packet-in read is settled or counted as lost", func() bool {
		now = d.allFigures()
		read := sum(now, "weft_southbound_packet_ins_read_total")
		return read > 0 && read == sum(now, "weft_southbound_packet_ins_settled_total")+sum(now, "weft_southbound_packet_ins_lost_total")
	})
	return now
}

// sum adds up a figure over its labels.
func sum(figures map[string]float64, name string) (n float64) {
	for key, v := range figures {
		if key == name || strings.HasPrefix(key, name+"{") {
			n += v
		}
	}
	return n
}
