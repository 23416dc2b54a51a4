package nf

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/fnv"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/weft-sdn/weft/sbi"
)

// The paths of the NRF's services.
const (
	managementPath = "/nnrf-nfm/v1"
	discoveryPath  = "/nnrf-disc/v1"
)

// How the NRF notifies: so many at once, so many waiting for each of these;
// beyond that, the newest are dropped, since who misses one asks again when its
// time is over. Each subscriber gets its notifications one after the other.
const (
	notifiers     = 8
	mostNotices   = 512
	notifyTimeout = 2 * time.Second
)

// An NRF answers over HTTP what its Repository knows.
type NRF struct {
	*Repository
	root    string // its own address as a URI
	now     func() time.Time
	log     *slog.Logger
	notices [notifiers]chan Notice // by subscriber
}

// NewNRF returns an NRF at an address such as http://10.0.0.1:7777.
func NewNRF(root string, cfg RepositoryConfig, now func() time.Time, log *slog.Logger) *NRF {
	n := &NRF{Repository: NewRepository(cfg), root: root, now: now, log: log}
	for i := range n.notices {
		n.notices[i] = make(chan Notice, mostNotices)
	}
	return n
}

// Run suspends and removes instances that are silent and sends notifications by
// client, until ctx ends.
func (n *NRF) Run(ctx context.Context, client *http.Client) {
	for _, notices := range n.notices {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case notice := <-notices:
					if err := notify(ctx, client, notice); err != nil {
						n.log.Warn("a subscriber cannot be notified", "uri", notice.URI, "event", notice.Data.Event, "error", err)
					}
				}
			}
		}()
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			n.send(n.Expire(n.now()))
		}
	}
}

// send queues notifications.
func (n *NRF) send(all []Notice) {
	for _, notice := range all {
		notice.Data.NFInstanceURI = n.root + notice.Data.NFInstanceURI
		of := fnv.New32a()
		of.Write([]byte(notice.URI))
		select {
		case n.notices[of.Sum32()%notifiers] <- notice:
		default:
			n.log.Warn("a notification is dropped: too many wait", "uri", notice.URI)
		}
	}
}

// notify sends a notification, twice if need be.
func notify(ctx context.Context, client *http.Client, notice Notice) error {
	b, err := json.Marshal(notice.Data)
	if err != nil {
		return err
	}
	for again := false; ; again = true {
		if err = post(ctx, client, notice.URI, b); err == nil || again {
			return err
		}
	}
}

func post(ctx context.Context, client *http.Client, uri string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, uri, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection is used again
	if resp.StatusCode/100 != 2 {
		return sbi.Problem(resp.StatusCode, "", "the subscriber's answer")
	}
	return nil
}

// Handler returns the NRF's services.
func (n *NRF) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, f := range map[string]func(http.ResponseWriter, *http.Request) error{
		"PUT " + managementPath + "/nf-instances/{id}":     n.register,
		"PATCH " + managementPath + "/nf-instances/{id}":   n.update,
		"DELETE " + managementPath + "/nf-instances/{id}":  n.deregister,
		"GET " + managementPath + "/nf-instances/{id}":     n.retrieve,
		"GET " + managementPath + "/nf-instances":          n.list,
		"POST " + managementPath + "/subscriptions":        n.subscribe,
		"PATCH " + managementPath + "/subscriptions/{id}":  n.resubscribe,
		"DELETE " + managementPath + "/subscriptions/{id}": n.unsubscribe,
		"GET " + discoveryPath + "/nf-instances":           n.discover,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := f(w, r); err != nil {
				sbi.WriteProblem(w, err)
			}
		})
	}
	return named(string(sbi.NRF), sbi.InstanceID(string(sbi.NRF), n.root), problems(mux))
}

func (n *NRF) register(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if !sbi.ValidInstanceID(id) {
		return invalid(sbi.InvalidMessageFormat, "{nfInstanceID}", "want a UUID")
	}
	body, err := bodyOf(r, "application/json")
	if err != nil {
		return err
	}
	s, created, notices, err := n.Register(n.now(), id, body)
	if err != nil {
		return err
	}
	n.send(notices)
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		w.Header().Set("Location", n.root+managementPath+"/nf-instances/"+id)
		n.log.Info("registered", "instance", id)
	}
	s.write(w, status)
	return nil
}

func (n *NRF) update(w http.ResponseWriter, r *http.Request) error {
	body, err := bodyOf(r, "application/json-patch+json")
	if err != nil {
		return err
	}
	s, more, notices, err := n.Update(n.now(), r.PathValue("id"), r.Header.Get("If-Match"), body)
	if err != nil {
		return err
	}
	n.send(notices)
	if !more {
		w.Header().Set("ETag", s.ETag)
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	s.write(w, http.StatusOK)
	return nil
}

func (n *NRF) deregister(w http.ResponseWriter, r *http.Request) error {
	notices, err := n.Deregister(n.now(), r.PathValue("id"))
	if err != nil {
		return err
	}
	n.send(notices)
	n.log.Info("deregistered", "instance", r.PathValue("id"))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (n *NRF) retrieve(w http.ResponseWriter, r *http.Request) error {
	s, err := n.Get(r.PathValue("id"))
	if err != nil {
		return err
	}
	if sbi.MatchETag(r.Header.Get("If-None-Match"), s.ETag) {
		w.Header().Set("ETag", s.ETag)
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	s.write(w, http.StatusOK)
	return nil
}

// link is a member of _links.
type link struct {
	Href string `json:"href"`
}

func (n *NRF) list(w http.ResponseWriter, r *http.Request) error {
	limit := 0
	if text := r.URL.Query().Get("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 {
			return invalid(sbi.OptionalParameterIncorrect, "query limit", "want a number of 1 or more")
		}
	}
	ids, all := n.List(sbi.NFType(r.URL.Query().Get("nf-type")), limit)
	items := []link{}
	for _, id := range ids {
		items = append(items, link{n.root + managementPath + "/nf-instances/" + id})
	}
	return writeJSON(w, http.StatusOK, "application/3gppHal+json", map[string]any{
		"_links": map[string]any{"self": link{n.root + r.URL.RequestURI()}, "item": items}, "totalItemCount": all,
	})
}

func (n *NRF) subscribe(w http.ResponseWriter, r *http.Request) error {
	body, err := bodyOf(r, "application/json")
	if err != nil {
		return err
	}
	s, err := n.Subscribe(n.now(), body)
	if err != nil {
		return err
	}
	w.Header().Set("Location", n.root+managementPath+"/subscriptions/"+s.SubscriptionID)
	return writeJSON(w, http.StatusCreated, "application/json", s)
}

func (n *NRF) resubscribe(w http.ResponseWriter, r *http.Request) error {
	body, err := bodyOf(r, "application/json-patch+json")
	if err != nil {
		return err
	}
	s, err := n.Resubscribe(n.now(), r.PathValue("id"), body)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, "application/json", s)
}

func (n *NRF) unsubscribe(w http.ResponseWriter, r *http.Request) error {
	if err := n.Unsubscribe(r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (n *NRF) discover(w http.ResponseWriter, r *http.Request) error {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return sbi.Problem(http.StatusBadRequest, "INVALID_QUERY_PARAM", err.Error())
	}
	q, err := sbi.ParseQuery(values)
	if err != nil {
		return err
	}
	result, err := n.Discover(q)
	if err != nil {
		return err
	}
	b, err := json.Marshal(result)
	if err != nil {
		return err
	}
	s := Stored{JSON: b, ETag: sbi.ETag(b)}
	w.Header().Set("Cache-Control", "max-age="+strconv.Itoa(result.ValidityPeriod))
	if sbi.MatchETag(r.Header.Get("If-None-Match"), s.ETag) {
		w.Header().Set("ETag", s.ETag)
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	s.write(w, http.StatusOK)
	return nil
}

// write answers with a profile or a search result.
func (s *Stored) write(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("ETag", s.ETag)
	w.WriteHeader(status)
	_, _ = w.Write(s.JSON) // who asked may have gone
}

func writeJSON(w http.ResponseWriter, status int, kind string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(b) // who asked may have gone
	return nil
}

// bodyOf reads the JSON text of a request that must be of one kind.
func bodyOf(r *http.Request, kind string) ([]byte, error) {
	if got, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(got), kind) {
		return nil, sbi.Problem(http.StatusUnsupportedMediaType, sbi.UnsupportedMediaType, "want "+kind)
	}
	return sbi.ReadBody(r.Body, sbi.DefaultLimits)
}

// problems answers as ProblemDetails what a mux has no handler for.
func problems(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		refused := refusal{ResponseWriter: w, status: http.StatusNotFound}
		h.ServeHTTP(&refused, r)
		cause := sbi.ResourceNotFound
		if refused.status == http.StatusMethodNotAllowed {
			cause = "METHOD_NOT_ALLOWED"
		}
		sbi.WriteProblem(w, sbi.Problem(refused.status, cause, ""))
	})
}

// refusal takes the headers and the status of an answer, and not its text.
type refusal struct {
	http.ResponseWriter
	status int
}

func (r *refusal) WriteHeader(status int)      { r.status = status }
func (r *refusal) Write(b []byte) (int, error) { return len(b), nil }
