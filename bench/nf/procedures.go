package nf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/weft-sdn/weft/bench/sim/httpload"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/sbi"
)

// simulationPath is what an AMF answers beside its services.
const simulationPath = "/weft-simulation/v1"

// mostAttached bounds the subscribers that are attached, or attaching, at once.
const mostAttached = 100_000

// Attachments says how many subscribers attach, when, and for how long.
type Attachments struct {
	Count    int
	Arrivals httpload.Arrivals
	Stay     time.Duration // attached
}

// procedures attaches and detaches subscribers: what an AMF does.
//
// The paper (section IV.B) counts, for an attachment, four messages between AMF
// and AUSF (authentication and location update, each with its answer) and four
// between AMF and SMF (session and modify bearer), and for a detachment two
// between AMF and SMF. In the interfaces of a 5G core these are the requests of
// attach and detach.
type procedures struct {
	*consumer
	root  string
	full  bool
	one   sync.Mutex // is held by the run that there is
	first sync.Once  // waits for the core, before the first run that somebody asks for
	wait  time.Duration
}

func newProcedures(c *consumer, root string, full bool) *procedures {
	return &procedures{consumer: c, root: root, full: full, wait: beginTime}
}

// attached is a subscriber.
type attached struct {
	session, policy *made
	ue              string
}

// attach attaches a subscriber.
func (p *procedures) attach(ctx context.Context, ue string) (*attached, error) {
	u := &attached{ue: ue}
	authenticated, err := p.ask(ctx, authentication, http.MethodPost, "/ue-authentications", map[string]string{
		"supiOrSuci": ue, "servingNetworkName": "5G:mnc001.mcc001.3gppnetwork.org",
	})
	if err != nil {
		return nil, fmt.Errorf("authentication: %w", err)
	}
	if authenticated == nil {
		return nil, errors.New("authentication: the answer has no Location")
	}
	if err := p.follow(ctx, authenticated, http.MethodPut, "/5g-aka-confirmation", map[string]string{"resStar": "00112233445566778899aabbccddeeff"}); err != nil {
		return nil, fmt.Errorf("location update: %w", err)
	}
	if p.full {
		if _, err := p.ask(ctx, registration, http.MethodPut, "/"+ue+"/registrations/amf-3gpp-access", map[string]string{"amfInstanceId": p.self.InstanceID}); err != nil {
			return nil, fmt.Errorf("registration: %w", err)
		}
		if u.policy, err = p.ask(ctx, accessPolicy, http.MethodPost, "/policies", map[string]string{"supi": ue}); err != nil {
			return nil, fmt.Errorf("policy: %w", err)
		}
	}
	u.session, err = p.ask(ctx, session, http.MethodPost, "/sm-contexts", map[string]any{
		"supi": ue, "pduSessionId": 1, "dnn": "internet", "sNssai": map[string]int{"sst": 1}, "servingNfId": p.self.InstanceID,
		"smContextStatusUri": p.root + simulationPath + "/sessions/" + url.PathEscape(ue),
	})
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	if u.session == nil {
		return nil, errors.New("session: the answer has no Location")
	}
	if err := p.follow(ctx, u.session, http.MethodPost, "/modify", map[string]string{"upCnxState": "ACTIVATING"}); err != nil {
		return nil, fmt.Errorf("modify bearer: %w", err)
	}
	return u, nil
}

// detach detaches a subscriber.
func (p *procedures) detach(ctx context.Context, u *attached) error {
	if err := p.follow(ctx, u.session, http.MethodPost, "/release", map[string]string{"cause": "REL_DUE_TO_DUPLICATE_SESSION_ID"}); err != nil {
		return fmt.Errorf("detach: %w", err)
	}
	if u.policy != nil {
		if err := p.follow(ctx, u.policy, http.MethodDelete, "", nil); err != nil {
			return fmt.Errorf("policy: %w", err)
		}
	}
	if p.full {
		if _, err := p.ask(ctx, registration, http.MethodPatch, "/"+u.ue+"/registrations/amf-3gpp-access", map[string]bool{"purgeFlag": true}); err != nil {
			return fmt.Errorf("registration: %w", err)
		}
	}
	return nil
}

// errBusy is why a run does not begin.
var errBusy = sbi.Problem(http.StatusConflict, "", "attachments are being made; there is one run at a time")

// run makes attachments and, when their time is over, detachments, and returns
// what came of them. It ends early, without detachments, with ctx.
func (p *procedures) run(ctx context.Context, a Attachments) (Report, error) {
	if !p.one.TryLock() {
		return Report{}, errBusy
	}
	defer p.one.Unlock()
	p.count.reset()
	var work sync.WaitGroup
	places := make(chan struct{}, mostAttached)
	n := 0
	stopped, stop := context.WithCancel(ctx)
	defer stop()
	a.Arrivals.Each(stopped, time.Now(), 1<<62, func(due time.Time) {
		n++
		ue := fmt.Sprintf("imsi-00101%010d", n)
		if n == a.Count {
			stop()
		}
		p.count.began(true)
		select {
		case places <- struct{}{}:
		default:
			p.count.attached(0, errors.New("too many are attached"))
			return
		}
		work.Go(func() {
			defer func() { <-places }()
			p.life(ctx, ue, due, a.Stay)
		})
	})
	work.Wait()
	return p.count.read(), nil
}

// life attaches a subscriber that is due, and detaches it when its time is over.
func (p *procedures) life(ctx context.Context, ue string, due time.Time, stay time.Duration) {
	u, err := p.attach(ctx, ue)
	if ctx.Err() != nil {
		return // it was not the core that failed
	}
	p.count.attached(time.Since(due), err)
	if err != nil {
		return
	}
	leaves := time.Now().Add(stay)
	if backoff.Sleep(ctx, stay) != nil {
		return
	}
	p.count.began(false)
	if err = p.detach(ctx, u); ctx.Err() != nil {
		return
	}
	p.count.detached(time.Since(leaves), err)
}

// handle adds what an AMF answers beside its services.
func (p *procedures) handle(mux *http.ServeMux) {
	mux.HandleFunc("POST "+simulationPath+"/attachments", func(w http.ResponseWriter, r *http.Request) {
		if err := p.requested(w, r); err != nil {
			sbi.WriteProblem(w, err)
		}
	})
	mux.HandleFunc("GET "+simulationPath+"/report", func(w http.ResponseWriter, r *http.Request) {
		if err := writeJSON(w, http.StatusOK, "application/json", p.count.read()); err != nil {
			sbi.WriteProblem(w, err)
		}
	})
	mux.HandleFunc("POST "+simulationPath+"/sessions/{ue}", func(w http.ResponseWriter, r *http.Request) {
		p.count.callback()
		w.WriteHeader(http.StatusNoContent)
	})
}

// beginTime is how long the first attachments wait for somebody to ask.
const beginTime = 10 * time.Second

// Most that one request may ask for.
const (
	mostRequested = 1_000_000
	mostRate      = 100_000.0
)

// requested makes the attachments that a request asks for, and answers with what
// came of them.
func (p *procedures) requested(w http.ResponseWriter, r *http.Request) error {
	b, err := bodyOf(r, "application/json")
	if err != nil {
		return err
	}
	q := struct {
		Count    int     `json:"count"`
		Rate     float64 `json:"rate"`
		Arrivals string  `json:"arrivals"`
		Seed     uint64  `json:"seed"`
		Stay     string  `json:"stay"`
	}{Count: 1, Rate: 10, Arrivals: "constant", Seed: 1, Stay: "0s"}
	if err := json.Unmarshal(b, &q); err != nil {
		return sbi.Problem(http.StatusBadRequest, sbi.InvalidMessageFormat, err.Error())
	}
	a := Attachments{Count: q.Count}
	switch a.Arrivals, err = httpload.ParseArrivals(q.Arrivals, q.Rate, q.Seed); {
	case err != nil:
		return invalid(sbi.OptionalMemberIncorrect, "/arrivals", err.Error())
	case q.Count < 1 || q.Count > mostRequested:
		return invalid(sbi.OptionalMemberIncorrect, "/count", fmt.Sprintf("want 1 to %d", mostRequested))
	case q.Rate <= 0 || q.Rate > mostRate:
		return invalid(sbi.OptionalMemberIncorrect, "/rate", fmt.Sprintf("want more than 0 and at most %v a second", mostRate))
	}
	if a.Stay, err = time.ParseDuration(q.Stay); err != nil || a.Stay < 0 {
		return invalid(sbi.OptionalMemberIncorrect, "/stay", "want a duration such as 60s")
	}
	p.first.Do(func() { // as right after the lab is up, when not all have registered
		ctx, cancel := context.WithTimeout(r.Context(), p.wait)
		defer cancel()
		_ = p.await(ctx) // what is missing then is in the report
	})
	report, err := p.run(r.Context(), a)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, "application/json", report)
}

// Attach has an AMF make attachments until there have been as many as there
// shall be, or ctx ends.
func (i *Instance) Attach(ctx context.Context, a Attachments) (Report, error) {
	if i.procedure == nil {
		return Report{}, fmt.Errorf("%s does not attach subscribers; an AMF does", i.cfg.Type)
	}
	return i.procedure.run(ctx, a)
}

// Await waits until there is somebody for an AMF to ask.
func (i *Instance) Await(ctx context.Context) error { return i.consumer.await(ctx) }

// await waits until there is somebody for an AMF to ask.
func (c *consumer) await(ctx context.Context) error {
	for _, t := range []target{authentication, session} {
		for {
			if all, err := c.discover(ctx, t); err == nil && len(all) > 0 {
				break
			}
			if err := backoff.Sleep(ctx, firstTry); err != nil {
				return err
			}
		}
	}
	c.forget()
	return nil
}
