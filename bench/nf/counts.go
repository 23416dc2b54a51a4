package nf

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weft-sdn/weft/sbi"
)

// counts gathers what a consumer has done.
type counts struct {
	mu             sync.Mutex // guards what follows
	report         Report
	attach, detach *hdrhistogram.Histogram // microseconds
}

// A Report says what a consumer has done.
type Report struct {
	Simulated   bool                          `json:"simulated"` // always
	Attachments Procedure                     `json:"attachments"`
	Detachments Procedure                     `json:"detachments"`
	Requests    int                           `json:"requests"`    // without discoveries
	Discoveries int                           `json:"discoveries"` // that have been asked of the NRF
	Failures    map[string]int                `json:"failures"`    // of requests and discoveries, by kind
	Instances   map[sbi.NFType]map[string]int `json:"instances"`   // answers, by type and instance
	Callbacks   int                           `json:"callbacks"`
}

// A Procedure is how attachments or detachments went. Times count from when each
// was due.
type Procedure struct {
	Begun  int     `json:"begun"`
	Done   int     `json:"done"`
	Failed int     `json:"failed"`
	MeanMS float64 `json:"mean_ms"`
	P50MS  float64 `json:"p50_ms"`
	P95MS  float64 `json:"p95_ms"`
	P99MS  float64 `json:"p99_ms"`
	MaxMS  float64 `json:"max_ms"`
}

func newCounts() *counts {
	// From a microsecond to a hundred seconds, to three digits.
	h := func() *hdrhistogram.Histogram { return hdrhistogram.New(1, 100e6, 3) }
	c := &counts{attach: h(), detach: h()}
	c.reset()
	return c
}

func (c *counts) discovered(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(err, context.Canceled) {
		return
	}
	c.report.Discoveries++
	if err != nil {
		c.report.Failures["discovery: "+kindOf(err)]++
	}
}

func (c *counts) asked(of sbi.NFType, a *answer, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(err, context.Canceled) {
		return
	}
	c.report.Requests++
	if err != nil {
		c.report.Failures[string(of)+": "+kindOf(err)]++
	}
	if a != nil && a.instance != "" {
		if c.report.Instances[of] == nil {
			c.report.Instances[of] = map[string]int{}
		}
		c.report.Instances[of][a.instance]++
	}
}

func (c *counts) callback() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Callbacks++
}

// began counts an attachment or, if it is none, a detachment.
func (c *counts) began(attachment bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if attachment {
		c.report.Attachments.Begun++
	} else {
		c.report.Detachments.Begun++
	}
}

// attached and detached count how one ended, and how long after it was due.
func (c *counts) attached(took time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Attachments.ended(c.attach, took, err)
}

func (c *counts) detached(took time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Detachments.ended(c.detach, took, err)
}

func (p *Procedure) ended(h *hdrhistogram.Histogram, took time.Duration, err error) {
	if err != nil {
		p.Failed++
		return
	}
	p.Done++
	_ = h.RecordValue(min(took.Microseconds(), h.HighestTrackableValue())) // it is within the range
}

// reset begins anew.
func (c *counts) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attach.Reset()
	c.detach.Reset()
	c.report = Report{Simulated: true, Failures: map[string]int{}, Instances: map[sbi.NFType]map[string]int{}}
}

// read returns what has been counted so far.
func (c *counts) read() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.report
	r.Failures = maps.Clone(r.Failures)
	r.Instances = map[sbi.NFType]map[string]int{}
	for of, by := range c.report.Instances {
		r.Instances[of] = maps.Clone(by)
	}
	r.Attachments.times(c.attach)
	r.Detachments.times(c.detach)
	return r
}

func (p *Procedure) times(h *hdrhistogram.Histogram) {
	ms := func(us int64) float64 { return float64(us) / 1000 }
	p.MeanMS = h.Mean() / 1000
	p.P50MS, p.P95MS, p.P99MS, p.MaxMS = ms(h.ValueAtPercentile(50)), ms(h.ValueAtPercentile(95)), ms(h.ValueAtPercentile(99)), ms(h.Max())
}
