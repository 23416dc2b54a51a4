package flowrules

import "time"

// pacing is how much a switch gets at a time, and when.
type pacing struct {
	cfg  *Config
	next time.Time
	most int // flow-mods that the switch may get at a time
}

// reset begins anew with a switch that has connected.
func (p *pacing) reset() { p.next, p.most = time.Time{}, p.cfg.MaxBatch }

// delay sets the time of the next step after one of n operations.
func (p *pacing) delay(n int, now time.Time) {
	p.next = now.Add(time.Duration(n) * time.Second / time.Duration(p.cfg.Rate))
}

// adapt adapts the size of batches to what the switch can do in time: it halves
// the size after a batch that was late as a whole, and adds one after a batch
// that was not.
func (p *pacing) adapt(n int, failures map[int]failure) {
	late := 0
	for _, f := range failures {
		if f.kind == failedLate {
			late++
		}
	}
	if late == n {
		p.most = max(1, min(n, p.most)/2)
	} else {
		p.most = min(p.most+1, p.cfg.MaxBatch)
	}
}
