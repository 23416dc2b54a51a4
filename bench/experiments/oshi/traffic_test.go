package oshi

import "testing"

func TestParseArrived(t *testing.T) {
	const text = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs
    lo:     840      10    0    0    0     0          0         0      840      10    0
  eth0:    2160      40    0    0    0     0          0         0      840      12    0
`
	if n, err := parseArrived(text); n != 40 || err != nil {
		t.Errorf("%d, %v; want 40", n, err)
	}
	for _, wrong := range []string{"", "lo: 1 2\n", "eth0: 1 x\n"} {
		if _, err := parseArrived(wrong); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
}
