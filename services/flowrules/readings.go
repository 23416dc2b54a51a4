package flowrules

import "time"

// readings is when a switch is read, for whom, and how that went. The lock of the
// worker guards it, as all of a ledger.
type readings struct {
	cfg       *Config
	unread    int // reads in a row that it has not answered, or has refused
	readDue   time.Time
	readLate  int // failed reads in a row
	readError string
	asked     ownerSet // to publish with the next reading
	soon      bool     // the last reading lacked entries: the next is soon
}

// reset begins anew with a switch that has connected.
func (r *readings) reset(now time.Time) {
	r.unread, r.readLate, r.readError = 0, 0, ""
	r.readDue, r.asked = now, 0
}

// again sets the time of the next read. A read that took long makes reads rarer, up to
// longestVerify times the interval, and so does a network of many switches, such that all
// reads together stay a small part of the load. jitter is in [0, 1). What was asked for
// during the read does not wait for that: it is read next.
func (r *readings) again(took time.Duration, switches int, jitter float64, now time.Time) {
	if r.asked != 0 {
		return
	}
	d := max(r.cfg.VerifyInterval, min(100*took, longestVerify*r.cfg.VerifyInterval), time.Duration(switches)*verifyShare)
	if r.soon {
		d, r.soon = min(d, max(r.cfg.VerifyAge+2*time.Second, 20*took)), false
	}
	r.readDue = now.Add(time.Duration(float64(d) * (0.9 + 0.2*jitter)))
}

// longestVerify is how many times the configured interval may pass between two reads of a
// switch because it is slow: what changes behind Weft's back is found by then.
const longestVerify = 5

// verifyShare is the least average time between the verifications of two
// switches.
const verifyShare = 60 * time.Millisecond
