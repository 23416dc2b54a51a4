package nf

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-sdn/weft/sbi"
)

// Producing is how an instance answers.
type Producing struct {
	ServiceTime time.Duration // of a request
	Payload     int           // octets of an answer
	Workers     int           // requests served at once; 0: all
	Overload    int           // requests that may wait for workers before others get 503; 0: any number
	Load        int           // percent, said in heartbeats; less than 0: what workers have to do
	Contexts    int           // resources kept at once
}

// A producer answers requests in the time and at the length that it is told to,
// and keeps the resources that they make.
type producer struct {
	how    Producing
	root   string
	answer []byte
	free   chan struct{} // has one value for each worker that has nothing to do; nil: there are enough
	queued atomic.Int64
	served atomic.Int64 // nanoseconds of workers
	now    func() time.Time

	mu     sync.Mutex // guards what follows
	made   map[string]*resource
	last   int       // number of the last resource
	since  time.Time // load has been asked for the last time
	before int64     // served then
}

// resource is what a request has made.
type resource struct {
	callback string // URI of who made it
	policy   *made  // at the PCF
}

func newProducer(how Producing, root string) *producer {
	p := &producer{how: how, root: root, now: time.Now, made: map[string]*resource{}}
	p.since = p.now()
	if p.how.Workers > 0 {
		p.free = make(chan struct{}, p.how.Workers)
		for range p.how.Workers {
			p.free <- struct{}{}
		}
	}
	const head, tail = `{"simulated":true,"data":"`, `"}`
	p.answer = []byte(head + strings.Repeat("x", max(0, how.Payload-len(head)-len(tail))) + tail)
	return p
}

// load returns the load in percent: what it is told to say, or the share of the
// workers' time that requests have taken since it was asked for before.
func (p *producer) load() int {
	if p.how.Load >= 0 {
		return p.how.Load
	}
	if p.free == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now, served := p.now(), p.served.Load()
	passed := now.Sub(p.since) * time.Duration(p.how.Workers)
	busy := served - p.before
	p.since, p.before = now, served
	if passed <= 0 {
		return 0
	}
	return min(100, int(100*busy/int64(passed)))
}

// serve waits for a worker and takes the service time; the error is a 503 if too
// many wait already.
func (p *producer) serve(ctx context.Context) error {
	if p.free != nil {
		defer p.queued.Add(-1)
		if n := p.queued.Add(1); p.how.Overload > 0 && n > int64(p.how.Overload+p.how.Workers) {
			e := sbi.Problem(http.StatusServiceUnavailable, sbi.NFCongestion, "too many requests wait")
			e.RetryAfter = time.Second
			return e
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.free:
		}
		began := p.now()
		defer func() {
			p.served.Add(int64(p.now().Sub(began)))
			p.free <- struct{}{}
		}()
	}
	if p.how.ServiceTime > 0 {
		time.Sleep(p.how.ServiceTime)
	}
	return nil
}

// add keeps a resource and returns its id.
func (p *producer) add(r *resource) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.made) >= p.how.Contexts {
		return "", sbi.Problem(http.StatusInternalServerError, sbi.InsufficientResources, "too many contexts")
	}
	p.last++
	id := strconv.Itoa(p.last)
	p.made[id] = r
	return id, nil
}

// find returns a resource, which is no more if it is taken.
func (p *producer) find(id string, take bool) (*resource, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.made[id]
	if r == nil {
		return nil, sbi.Problem(http.StatusNotFound, sbi.ContextNotFound, "this instance has no such context")
	}
	if take {
		delete(p.made, id)
	}
	return r, nil
}

// handler returns what an instance answers.
func (i *Instance) handler() http.Handler {
	mux := http.NewServeMux()
	for _, o := range operations[i.cfg.Type] {
		mux.HandleFunc(o.pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := i.operate(w, r, o); err != nil {
				sbi.WriteProblem(w, err)
			}
		})
	}
	if i.cfg.Type == UDR {
		for _, o := range authenticationData {
			mux.HandleFunc(o.pattern, func(w http.ResponseWriter, r *http.Request) { i.producer.say(w, r, o.answer) })
		}
	}
	if i.procedure != nil {
		i.procedure.handle(mux)
	}
	return problems(mux)
}

// say answers a request with a text in JSON, or with nothing.
func (p *producer) say(w http.ResponseWriter, r *http.Request, text string) {
	if err := p.serve(r.Context()); err != nil {
		sbi.WriteProblem(w, err)
		return
	}
	if text == "" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, text) // who asked may have gone
}

// operate answers a request.
func (i *Instance) operate(w http.ResponseWriter, r *http.Request, o operation) error {
	var body struct {
		Callback string `json:"smContextStatusUri"`
	}
	if r.ContentLength != 0 {
		b, err := bodyOf(r, "application/json")
		if err != nil {
			return err
		}
		if err := json.Unmarshal(b, &body); err != nil {
			return sbi.Problem(http.StatusBadRequest, sbi.InvalidMessageFormat, err.Error())
		}
	}
	if err := i.producer.serve(r.Context()); err != nil {
		return err
	}
	res := &resource{callback: body.Callback}
	if o.effect != asks && o.effect != creates {
		var err error
		if res, err = i.producer.find(r.PathValue("id"), o.effect != acts); err != nil {
			return err
		}
	}
	if o.before != nil && i.cfg.Full {
		if err := o.before(i, r, res); err != nil {
			return upstream(err)
		}
	}
	status := http.StatusOK
	switch o.effect {
	case creates:
		id, err := i.producer.add(res)
		if err != nil {
			return err
		}
		w.Header().Set("Location", i.producer.root+r.URL.Path+"/"+id)
		status = http.StatusCreated
	case ends:
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(i.producer.answer)))
	w.WriteHeader(status)
	_, _ = w.Write(i.producer.answer) // who asked may have gone
	return nil
}

// upstream returns the problem of a request that failed because another did.
func upstream(err error) error {
	if errors.Is(err, errNone) {
		return sbi.Problem(http.StatusGatewayTimeout, sbi.DiscoveryFailure, err.Error())
	}
	return sbi.Problem(http.StatusGatewayTimeout, sbi.TargetNotReachable, err.Error())
}

// vectors asks the UDM for the vectors of an authentication.
func (i *Instance) vectors(r *http.Request, _ *resource) error {
	_, err := i.consumer.ask(r.Context(), vectors, http.MethodPost, "/imsi/security-information/generate-auth-data", map[string]string{"ausfInstanceId": i.ID})
	return err
}

// policy asks the UDM for the subscriber's data and has the PCF make a policy.
func (i *Instance) policy(r *http.Request, res *resource) error {
	_, err := i.consumer.ask(r.Context(), subscriber, http.MethodGet, "/imsi/sm-data", nil)
	if err != nil {
		return err
	}
	res.policy, err = i.consumer.ask(r.Context(), sessionPolicy, http.MethodPost, "/sm-policies", map[string]string{"dnn": "internet"})
	return err
}

// released ends the policy of a session and calls back who made the session.
func (i *Instance) released(r *http.Request, res *resource) error {
	var errs []error
	if res.policy != nil {
		errs = append(errs, i.consumer.follow(r.Context(), res.policy, http.MethodPost, "/delete", map[string]string{}))
	}
	if res.callback != "" {
		_, err := i.consumer.request(r.Context(), http.MethodPost, res.callback, map[string]any{"statusInfo": map[string]string{"resourceStatus": "RELEASED"}})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
