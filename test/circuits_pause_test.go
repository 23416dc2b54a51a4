package test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// paused: Open vSwitch of an edge stands still for longer than BFD waits. What is lost is
// what came meanwhile, less than in the second that BFD takes to begin anew.
func (f *carrierFaults) paused() {
	f.t.Helper()
	pid := f.daemon("pe1", "ovs-vswitchd.pid")
	for _, pause := range []time.Duration{250 * time.Millisecond, 500 * time.Millisecond} {
		f.sessions()
		const every = 10 * time.Millisecond
		stream := endless(f.t, f.l, "red1", "red2", every)
		stream.flows(20)
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			f.t.Fatal(err)
		}
		time.Sleep(pause)
		_ = syscall.Kill(pid, syscall.SIGCONT)
		stream.flows(200)
		r := stream.end()
		f.t.Logf("a pause of %v: %d of %d lost, the longest outage %v ms", pause, r.Lost(), r.Sent, r.Outage)
		if lost := time.Duration(r.Lost()) * every; lost >= pause+500*time.Millisecond {
			f.t.Errorf("Open vSwitch stood still for %v, and frames of %v were lost", pause, lost)
		}
	}
}

// sessions waits until the links of all nodes have a BFD session that is up.
func (f *carrierFaults) sessions() {
	f.t.Helper()
	f.eventually("all BFD sessions up", func() bool {
		var list struct {
			Nodes []struct {
				State  string
				Report struct {
					Ports []struct{ Role, Bfd string }
				}
			}
		}
		f.json(&list, "get", "nodes")
		up := 0
		for _, n := range list.Nodes {
			for _, p := range n.Report.Ports {
				if n.State == "live" && p.Role == "link" && p.Bfd == "up" {
					up++
				}
			}
		}
		return up == 10
	})
}

var sessionGone = regexp.MustCompile(`(?m)^.*,new,.*,\{\}$`)

// nodesKilled kills the worker with nodes and tunnels. No session is taken away.
func (f *carrierFaults) nodesKilled() {
	f.t.Helper()
	f.sessions()
	for _, node := range []string{"pe1", "pe2", "cr1", "cr2"} {
		bridge, err := f.l.Bridge(node)
		if err != nil {
			f.t.Fatal(err)
		}
		var said bytes.Buffer
		socket := "unix:" + filepath.Join(f.l.Dir(), bridge, "db.sock")
		c := exec.CommandContext(f.t.Context(), "ovsdb-client", "--format=csv", "--no-headings", "monitor", socket, "Interface", "name,bfd")
		c.Stdout = &said
		if err := c.Start(); err != nil {
			f.t.Fatal(err)
		}
		defer func() {
			_ = c.Process.Kill()
			_ = c.Wait()
			if gone := sessionGone.FindString(said.String()); said.Len() == 0 || gone != "" {
				f.t.Errorf("%s: of %d octets, a session was taken away: %s", node, said.Len(), gone)
			}
		}()
	}
	pid := f.pids()["policy"]
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		f.t.Fatal(err)
	}
	f.eventually("the worker of nodes again", func() bool { now := f.pids()["policy"]; return now != 0 && now != pid })
	f.sessions()
	f.whole()
}
