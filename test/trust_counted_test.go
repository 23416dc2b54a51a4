package test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/test/testbed"
)

// trustCounted kills the process with the southbound under load, again and again:
// afterwards every packet-in that it has read is settled or counted as lost. Where
// the switch comes back soon, those that were away to other processes are dealt
// with by the next process.
func trustCounted(t *testing.T, f *faults) {
	d := f.deploy(t, fourWorkers("grpc", "grpc"))
	var lost float64
	for round := 0; ; round++ {
		source := d.connect()
		load := d.load(source)
		time.Sleep(300 * time.Millisecond) // of load; how much is read does not matter
		old := d.pids()["southbound"]
		if err := syscall.Kill(d.pids()["routing"], syscall.SIGSTOP); err != nil { // packets wait for it
			t.Fatal(err)
		}
		eventually(t, "packet-ins wait", func() bool {
			now, err := d.figures()
			return err == nil && sum(now, "weft_deploy_packets_waiting") > 20
		})
		if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		killed := time.Now()
		load.cancel()
		<-load.sent
		source.Close()
		if round > 0 { // the switch comes back
			eventually(t, "the switch back", func() bool {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				s, err := d.source(ctx, testbed.SourceConfig{Address: d.openflow, DPID: loadDPID, Hosts: loadHosts, Ports: loadPorts, Seed: 1})
				if err == nil {
					defer s.Close()
					time.Sleep(3 * time.Second) // in which it says nothing
				}
				return err == nil
			})
		}
		took := time.Since(killed)
		eventually(t, "southbound started again", func() bool { now := d.pids()["southbound"]; return now != 0 && now != old })
		d.allUp()
		now := d.settled()
		again, more := sum(now, "weft_southbound_packet_ins_again_total"), sum(now, "weft_southbound_packet_ins_lost_total")-lost
		lost += more
		t.Logf("round %d: %v packet-ins dealt with by the next process, %v lost; the switch was back for 3 s after %v", round, again, more, took)
		switch {
		case round == 0:
			if again > 0 || more <= 0 {
				t.Error("no packet-ins lost by the kill, though the switch has not come back")
			}
		case again > 0:
			return
		case took < 8*time.Second || round > 8: // a loaded machine takes longer, and what is older than 10 s is lost
			t.Fatal("no packet-ins dealt with by the next process")
		}
	}
}

// settled waits until no packet-in is being dealt with, and returns the figures
// then: what was read is settled or counted.
func (d *deployment) settled() (now map[string]float64) {
	d.t.Helper()
	eventually(d.t, "every packet-in read is settled or counted as lost", func() bool {
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
