package scp

import (
	"strconv"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/bench/experiments/experimentstest"
)

// rehearsal returns samples as an experiment takes them.
func rehearsal(experiment, name string, round int) (rows [][]string) {
	switch experiment {
	case "scp-share":
		for _, rate := range shareRates() {
			rows = append(rows, []string{strconv.Itoa(rate), counted(60 + round), counted(1000*rate + len(name)), counted(50), "0"})
		}
	case "scp-throughput":
		for _, n := range connectionCounts(false) {
			rows = append(rows, []string{strconv.Itoa(n), written(float64(1000 * n * round / len(name))), written(float64(n)), written(float64(len(name))), "4", "0"})
		}
	case "scp-latency":
		for _, rate := range requestRates(false) {
			rows = append(rows, []string{strconv.Itoa(rate), "0.2", written(float64(len(name)) / 10), "0"})
		}
	case "scp-forwarded":
		for _, n := range connectionCounts(false) {
			rows = append(rows, []string{strconv.Itoa(n), written(float64(1000 * n * round / len(name))), "1", "100", "2", "0"})
		}
	case "scp-faults":
		for i, f := range faults() {
			rows = append(rows, []string{f.name, "200", counted(i % 2), "0", written(float64(100*round + i)), counted(i % 2), []string{"held", "one request failed"}[i%2]})
		}
	}
	return rows
}

func TestExperiments(t *testing.T) {
	for _, e := range All() {
		t.Run(e.Name, func(t *testing.T) {
			experimentstest.Rehearse(t, e, func(name string, round int) [][]string { return rehearsal(e.Name, name, round) })
		})
	}
}

// What the paper is said to show can be read.
func TestPaper(t *testing.T) {
	if rows, err := paperValues.Rows(); err != nil || len(rows) == 0 {
		t.Errorf("%d lines, %v", len(rows), err)
	}
}

func TestParseIP(t *testing.T) {
	text := `Ip: Forwarding DefaultTTL InReceives InHdrErrors OutRequests
Ip: 2 64 120 0 110
Icmp: InMsgs
Icmp: 0
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs
    lo:     840      10    0    0    0     0          0         0      840      10    0
  eth0:    2160      40    0    0    0     0          0         0      840      10    0
`
	if in, out, err := parseIP(text); in != 110 || out != 100 || err != nil {
		t.Errorf("%d in, %d out, %v; want 110, 100", in, out, err)
	}
	for _, wrong := range []string{"", "Ip: InReceives OutRequests\nIp: 1 1\n", "lo: 1 1\n"} {
		if _, _, err := parseIP(wrong); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
}

// A real core that is not installed is refused before anything is made.
func TestRealCoreIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := openReal(t.Context()); err == nil || !strings.Contains(err.Error(), "open5gs-nrfd is not in PATH") {
		t.Errorf("%v", err)
	}
}
