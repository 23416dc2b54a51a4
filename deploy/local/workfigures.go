package local

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-sdn/weft/api"
)

// StageWork is the name of the work of a stage; that of calls is the method.
const StageWork = "stage"

// OtherProcesses is the caller of a method in another process, or outside.
const OtherProcesses = "other processes"

// WorkOf is the work of one kind at a service of this process.
type WorkOf struct {
	Service string
	Name    string // StageWork, or a method
	Caller  string // the service that calls in this process, or OtherProcesses; empty for StageWork
	*Work
}

// Work returns the work of the services of this process. Kinds without arrivals
// are left out.
func (w *Worker) Work() (list []WorkOf) {
	add := func(o WorkOf) {
		if o.Count() > 0 {
			list = append(list, o)
		}
	}
	running := w.Running()
	for _, s := range running.Services {
		if s.Spec.Stage {
			add(WorkOf{s.Spec.Name, StageWork, "", &s.sent.packets})
		}
		for _, m := range s.methods {
			add(WorkOf{s.Spec.Name, m.name, OtherProcesses, &m.work})
			for _, caller := range running.Services {
				if c := caller.sent.calls[m.name]; c != nil {
					add(WorkOf{s.Spec.Name, m.name, caller.Spec.Name, &c.here})
				}
			}
		}
	}
	return list
}

// workCollector exports the work of a worker's services.
type workCollector struct {
	w                                          *Worker
	arrivals, seconds, squares, waits, indices *prometheus.Desc
}

func newWorkCollector(w *Worker) *workCollector {
	labels := []string{"service", "work", "caller"}
	desc := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc("weft_deploy_work_"+name, help, append(labels[:3:3], more...), nil)
	}
	return &workCollector{
		w:        w,
		arrivals: desc("arrivals_total", "Packets of a service's stage, or calls of its method by a caller."),
		seconds:  desc("seconds", "Service times of one in 64 arrivals."),
		squares:  desc("seconds_squares", "Sum of the squares of the service times in weft_deploy_work_seconds."),
		waits:    desc("wait_seconds", "Times between arrival in the process and service, of one packet in 64."),
		indices:  desc("dispersion", "Variance of the arrivals in a time to their mean, over the last 40 s; 1 for Poisson arrivals.", "over"),
	}
}

// Describe sends nothing, because kinds of work come and go.
func (c *workCollector) Describe(chan<- *prometheus.Desc) {}

// Collect reads all work (prometheus.Collector).
func (c *workCollector) Collect(ch chan<- prometheus.Metric) {
	now := time.Now()
	for _, o := range c.w.Work() {
		labels := []string{o.Service, o.Name, o.Caller}
		t := o.Times()
		ch <- prometheus.MustNewConstMetric(c.arrivals, prometheus.CounterValue, float64(o.Count()), labels...)
		if t.Count > 0 {
			ch <- prometheus.MustNewConstSummary(c.seconds, t.Count, t.Sum, nil, labels...)
			ch <- prometheus.MustNewConstMetric(c.squares, prometheus.CounterValue, t.Squares, labels...)
		}
		if t.Waits > 0 {
			ch <- prometheus.MustNewConstSummary(c.waits, t.Waits, t.WaitSum, nil, labels...)
		}
		for _, d := range o.Dispersion(now) {
			over := strconv.FormatFloat(d.Over.Seconds(), 'g', -1, 64) + "s"
			ch <- prometheus.MustNewConstMetric(c.indices, prometheus.GaugeValue, d.Index, append(labels[:3:3], over)...)
		}
	}
}

// Limits returns the limits of the configuration that the services have reached lately.
func (w *Worker) Limits(now int64) (list []*api.LimitReached) {
	for _, s := range w.Running().Services {
		if of := s.limits.Load(); of != nil {
			list = append(list, (*of)(now)...)
		}
	}
	return list
}
