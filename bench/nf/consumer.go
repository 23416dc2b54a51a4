package nf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weft-sdn/weft/bench/sim/httpload"
	"github.com/weft-sdn/weft/sbi"
)

// Consuming is how an instance uses what it discovers.
type Consuming struct {
	Forever        bool // never asks again after the first discovery
	CheckInstance  bool // asks for the instance that made a resource, and refuses answers of another
	IgnoreLocation bool // sends what follows to where it sent the first request, not to the address in Location
}

// A consumer discovers instances, keeps what it finds for as long as the NRF
// says, and asks them.
type consumer struct {
	client *http.Client
	nrf    string
	self   sbi.Requester
	how    Consuming
	now    func() time.Time
	count  *counts

	mu    sync.Mutex // guards cache
	cache map[string]*found
}

// found is the answer to a discovery; its mutex is held while it is asked for.
type found struct {
	mu       sync.Mutex
	profiles []sbi.NFProfile
	etag     string
	until    time.Time
}

// mostFound bounds the discoveries that are kept.
const mostFound = 1024

func newConsumer(client *http.Client, nrf string, self sbi.Requester, how Consuming) *consumer {
	return &consumer{client: client, nrf: nrf, self: self, how: how, now: time.Now, count: newCounts(), cache: map[string]*found{}}
}

// target is what a consumer wants to ask.
type target struct {
	of       sbi.NFType
	service  string
	version  string
	instance string // or any
}

// discover returns the profiles of those who serve a target.
func (c *consumer) discover(ctx context.Context, t target) ([]sbi.NFProfile, error) {
	q := sbi.Query{TargetNFType: t.of, Requester: c.self, ServiceNames: []string{t.service}, TargetInstanceID: t.instance}
	key := q.Values().Encode()
	c.mu.Lock()
	f := c.cache[key]
	if f == nil {
		if len(c.cache) >= mostFound {
			clear(c.cache)
		}
		f = &found{}
		c.cache[key] = f
	}
	c.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.profiles) > 0 && (c.how.Forever || c.now().Before(f.until)) {
		return f.profiles, nil
	}
	asked := c.now()
	a, err := c.send(ctx, http.MethodGet, c.nrf+discoveryPath+"/nf-instances?"+key, "", nil, "If-None-Match", f.etag)
	if err == nil {
		err = a.problem()
	}
	c.count.discovered(err)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	if a.status != http.StatusNotModified {
		var r sbi.SearchResult
		if err := json.Unmarshal(a.body, &r); err != nil {
			return nil, fmt.Errorf("discovery: %w", err)
		}
		f.profiles, f.etag, f.until = r.NFInstances, a.header.Get("ETag"), asked.Add(time.Duration(r.ValidityPeriod)*time.Second)
		return f.profiles, nil
	}
	f.until = asked.Add(maxAge(a.header))
	return f.profiles, nil
}

// forget forgets what has been discovered.
func (c *consumer) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.cache)
}

// maxAge returns how long an answer may be kept.
func maxAge(h http.Header) time.Duration {
	for part := range strings.SplitSeq(h.Get("Cache-Control"), ",") {
		if text, ok := strings.CutPrefix(strings.TrimSpace(part), "max-age="); ok {
			if n, err := strconv.Atoi(text); err == nil && n > 0 {
				return time.Duration(n) * time.Second
			}
		}
	}
	return 0
}

// errNone is why nobody is asked.
var errNone = errors.New("no instance serves it")

// choose returns an end point of a service: of those of the lowest priority, one
// at random, by their capacities.
func choose(profiles []sbi.NFProfile, service string) (instance string, e sbi.EndPoint, err error) {
	type candidate struct {
		instance string
		sbi.EndPoint
	}
	var all []candidate
	sum := 0
	for i := range profiles {
		for _, e := range profiles[i].EndPoints() {
			if e.Service != service || len(all) > 0 && e.Priority > all[0].Priority {
				continue
			}
			if len(all) > 0 && e.Priority < all[0].Priority {
				all, sum = all[:0], 0
			}
			all = append(all, candidate{profiles[i].NFInstanceID, e})
			sum += e.Capacity
		}
	}
	if len(all) == 0 {
		return "", e, errNone
	}
	if sum == 0 {
		c := all[rand.IntN(len(all))]
		return c.instance, c.EndPoint, nil
	}
	n := rand.IntN(sum)
	for _, c := range all {
		if n -= c.Capacity; n < 0 {
			return c.instance, c.EndPoint, nil
		}
	}
	return "", e, errNone
}

// made is a resource that a producer has made for a consumer.
type made struct {
	target
	uri string // of the resource
}

// requestTime bounds each request of a procedure.
const requestTime = 10 * time.Second

// ask sends a request to an instance that serves a target, and returns the
// resource that it made, if any.
func (c *consumer) ask(ctx context.Context, t target, method, path string, body any) (*made, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	a, root, err := c.askOne(ctx, t, method, path, body)
	c.count.asked(t.of, a, err)
	if err != nil {
		return nil, err
	}
	location, err := url.Parse(a.header.Get("Location"))
	if err != nil || location.Path == "" {
		return nil, err
	}
	m := &made{target: t, uri: root + location.Path}
	if location.Host != "" && !c.how.IgnoreLocation {
		m.uri = location.String()
	}
	if c.how.CheckInstance {
		m.instance = a.instance
	}
	return m, nil
}

func (c *consumer) askOne(ctx context.Context, t target, method, path string, body any) (a *answer, root string, err error) {
	profiles, err := c.discover(ctx, t)
	if err != nil {
		return nil, "", err
	}
	instance, e, err := choose(profiles, t.service)
	if err != nil {
		return nil, "", fmt.Errorf("%s of %s: %w", t.service, t.of, err)
	}
	root = e.Scheme + "://" + e.Addr.String()
	a, err = c.request(ctx, method, root+e.Prefix+"/"+t.service+"/"+t.version+path, body)
	if err == nil && c.how.CheckInstance && !strings.EqualFold(a.instance, instance) {
		err = &otherInstance{want: instance, got: a.instance}
	}
	return a, root, err
}

// follow sends a request about a resource; path is below its URI.
func (c *consumer) follow(ctx context.Context, m *made, method, path string, body any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	uri := m.uri + path
	if m.instance != "" {
		profiles, err := c.discover(ctx, m.target)
		var e sbi.EndPoint
		if err == nil {
			_, e, err = choose(profiles, m.service)
		}
		u, parsed := url.Parse(uri)
		if err = errors.Join(err, parsed); err != nil {
			c.count.asked(m.of, nil, err)
			return err
		}
		u.Scheme, u.Host = e.Scheme, e.Addr.String()
		uri = u.String()
	}
	a, err := c.request(ctx, method, uri, body)
	if err == nil && m.instance != "" && !strings.EqualFold(a.instance, m.instance) {
		err = &otherInstance{want: m.instance, got: a.instance}
	}
	c.count.asked(m.of, a, err)
	return err
}

// request sends a request with a JSON body, and returns the problem that its
// answer is as an error.
func (c *consumer) request(ctx context.Context, method, uri string, body any) (*answer, error) {
	var b []byte
	kind := ""
	if body != nil {
		kind = "application/json"
		var err error
		if b, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	a, err := c.send(ctx, method, uri, kind, b)
	if err != nil {
		return nil, err
	}
	return a, a.problem()
}

// otherInstance is why a consumer that asked for an instance refuses an answer.
type otherInstance struct{ want, got string }

func (o *otherInstance) Error() string {
	return fmt.Sprintf("instance %s answers instead of %s", o.got, o.want)
}

// kindOf sorts what a request failed with.
func kindOf(err error) string {
	var p *sbi.ProblemDetails
	var other *otherInstance
	switch {
	case errors.Is(err, errNone):
		return "no-instance"
	case errors.As(err, &other):
		return "other-instance"
	case errors.As(err, &p):
		return strings.TrimSpace(strconv.Itoa(p.Status) + " " + string(p.Cause))
	}
	return httpload.Kind(err)
}
