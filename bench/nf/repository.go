package nf

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weft-sdn/weft/sbi"
)

// RepositoryConfig bounds a Repository and times it.
type RepositoryConfig struct {
	Instances     int           // registered at once
	Subscriptions int           // at once
	Heartbeat     time.Duration // between heartbeats, unless an instance asks for less
	Margin        time.Duration // by which a heartbeat may be late before its instance is suspended
	Removal       time.Duration // after which a suspended instance is removed
	Validity      time.Duration // of what is discovered
	Subscribed    time.Duration // longest time of a subscription
}

// DefaultRepository is what an NRF has unless it is told otherwise.
func DefaultRepository() RepositoryConfig {
	return RepositoryConfig{
		Instances: 10_000, Subscriptions: 10_000, Heartbeat: 10 * time.Second, Margin: 5 * time.Second, Removal: time.Minute,
		Validity: 10 * time.Second, Subscribed: 24 * time.Hour,
	}
}

// Validate says what is wrong.
func (c *RepositoryConfig) Validate() error {
	switch {
	case c.Instances < 1 || c.Subscriptions < 1:
		return fmt.Errorf("%d instances and %d subscriptions: want 1 or more", c.Instances, c.Subscriptions)
	case c.Heartbeat < time.Second || c.Validity < time.Second || c.Subscribed < time.Second:
		return fmt.Errorf("heartbeat %v, validity %v, subscribed %v: want 1s or more", c.Heartbeat, c.Validity, c.Subscribed)
	case c.Margin < 0 || c.Removal < 0:
		return fmt.Errorf("margin %v, removal %v: want no less than 0", c.Margin, c.Removal)
	}
	return nil
}

// A Repository is what an NRF knows: the profiles that are registered, and who
// wants to know of changes. It is safe for concurrent use; it sends nothing and
// reads no clock.
type Repository struct {
	cfg RepositoryConfig

	mu        sync.Mutex // guards what follows
	instances map[string]*registered
	wanted    map[string]*sbi.SubscriptionData
	last      int // number of the last subscription
}

// registered is an instance. Profiles are replaced, never changed.
type registered struct {
	Stored
	profile *sbi.NFProfile
	heard   time.Time // its last heartbeat
}

// Stored is a profile as the NRF gives it out.
type Stored struct {
	JSON []byte
	ETag string
}

// A Notice is a notification, and where it goes.
type Notice struct {
	URI  string
	Data sbi.NotificationData
}

// NewRepository returns an empty repository.
func NewRepository(cfg RepositoryConfig) *Repository {
	return &Repository{cfg: cfg, instances: map[string]*registered{}, wanted: map[string]*sbi.SubscriptionData{}}
}

// Register stores a profile, and reports whether it is a new one.
func (r *Repository) Register(now time.Time, id string, body []byte) (s Stored, created bool, n []Notice, err error) {
	p := &sbi.NFProfile{}
	if err := json.Unmarshal(body, p); err != nil {
		return s, false, nil, err
	}
	if err := p.CheckReceived(); err != nil {
		return s, false, nil, err
	}
	if !strings.EqualFold(id, p.NFInstanceID) {
		return s, false, nil, invalid(sbi.MandatoryMemberIncorrect, "/nfInstanceId", "is not that of the path")
	}
	if most := int(r.cfg.Heartbeat / time.Second); p.HeartBeatTimer == 0 || p.HeartBeatTimer > most {
		p.HeartBeatTimer = most
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.instances[strings.ToLower(id)]
	if was == nil && len(r.instances) >= r.cfg.Instances {
		return s, false, nil, sbi.Problem(http.StatusInternalServerError, sbi.InsufficientResources, fmt.Sprintf("%d instances are registered", r.cfg.Instances))
	}
	x, err := r.store(now, p)
	if err != nil {
		return s, false, nil, err
	}
	event, before := sbi.NFRegistered, p
	if was != nil {
		event, before = sbi.NFProfileChanged, was.profile
	}
	return x.Stored, was == nil, r.notices(now, event, before, p, nil), nil
}

// store puts a profile in place; mu is held.
func (r *Repository) store(now time.Time, p *sbi.NFProfile) (*registered, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	x := &registered{Stored: Stored{JSON: b, ETag: sbi.ETag(b)}, profile: p, heard: now}
	r.instances[strings.ToLower(p.NFInstanceID)] = x
	return x, nil
}

// find returns an instance; mu is held.
func (r *Repository) find(id string) (*registered, error) {
	if x := r.instances[strings.ToLower(id)]; x != nil {
		return x, nil
	}
	return nil, sbi.Problem(http.StatusNotFound, sbi.ContextNotFound, "no such instance is registered")
}

// beats are the members that heartbeats set, of which nobody is notified.
var beats = []string{"/nfStatus", "/load", "/loadTimeStamp"}

// Update applies a JSON Patch to a profile, which counts as a heartbeat, and
// reports whether it was more than one.
func (r *Repository) Update(now time.Time, id, ifMatch string, patch []byte) (s Stored, more bool, n []Notice, err error) {
	items, err := sbi.ParsePatch(patch)
	if err != nil {
		return s, false, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	x, err := r.find(id)
	if err != nil {
		return s, false, nil, err
	}
	if ifMatch != "" && !sbi.MatchETag(ifMatch, x.ETag) {
		return s, false, nil, sbi.Problem(http.StatusPreconditionFailed, "", "the profile is another meanwhile")
	}
	b, err := sbi.Apply(x.JSON, items)
	if err != nil {
		return s, false, nil, err
	}
	p := &sbi.NFProfile{}
	if err := sbi.DefaultLimits.Check(b); err != nil {
		return s, false, nil, err
	}
	if err := json.Unmarshal(b, p); err != nil {
		return s, false, nil, err
	}
	if err := p.CheckReceived(); err != nil {
		return s, false, nil, err
	}
	if p.NFInstanceID != x.profile.NFInstanceID || p.NFType != x.profile.NFType {
		return s, false, nil, sbi.Problem(http.StatusForbidden, sbi.ModificationNotAllowed, "nfInstanceId and nfType of an instance stay")
	}
	before := x.profile
	if x, err = r.store(now, p); err != nil {
		return s, false, nil, err
	}
	more = slices.ContainsFunc(items, func(i sbi.PatchItem) bool {
		return !slices.Contains(beats, i.Path) && !(strings.HasPrefix(i.Path, "/nfService") && strings.HasSuffix(i.Path, "/load"))
	})
	if more || before.NFStatus != p.NFStatus {
		n = r.notices(now, sbi.NFProfileChanged, before, p, sbi.Changes(items))
	}
	return x.Stored, more, n, nil
}

// Deregister removes a profile.
func (r *Repository) Deregister(now time.Time, id string) ([]Notice, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x, err := r.find(id)
	if err != nil {
		return nil, err
	}
	return r.remove(now, x), nil
}

// remove removes an instance; mu is held.
func (r *Repository) remove(now time.Time, x *registered) []Notice {
	delete(r.instances, strings.ToLower(x.profile.NFInstanceID))
	return r.notices(now, sbi.NFDeregistered, x.profile, nil, nil)
}

// Get returns a profile.
func (r *Repository) Get(id string) (Stored, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x, err := r.find(id)
	if err != nil {
		return Stored{}, err
	}
	return x.Stored, nil
}

// List returns the ids of instances, of one type if that is not empty, the first
// limit of them if that is not 0, and how many there are.
func (r *Repository) List(of sbi.NFType, limit int) (ids []string, all int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(r.instances)) {
		if p := r.instances[id].profile; of == "" || p.NFType == of {
			if all++; limit == 0 || len(ids) < limit {
				ids = append(ids, p.NFInstanceID)
			}
		}
	}
	return ids, all
}

// Discover answers a query. What a requester that is registered has not said of
// itself is taken from its profile.
func (r *Repository) Discover(q *sbi.Query) (*sbi.SearchResult, error) {
	r.mu.Lock()
	var all []*sbi.NFProfile
	for _, x := range r.instances {
		if x.profile.NFType == q.TargetNFType {
			all = append(all, x.profile)
		}
	}
	if x := r.instances[strings.ToLower(q.Requester.InstanceID)]; x != nil && x.profile.NFType == q.Requester.NFType {
		q.Requester.Complete(x.profile)
	}
	r.mu.Unlock()
	found, err := sbi.Search(all, q)
	if err != nil {
		return nil, err
	}
	return &sbi.SearchResult{ValidityPeriod: int(r.cfg.Validity / time.Second), NFInstances: found, IgnoredQuery: q.Ignored}, nil
}

// Expire suspends the instances whose heartbeats stay away, removes those that
// have been suspended for long, and ends subscriptions whose time is over.
func (r *Repository) Expire(now time.Time) []Notice {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Notice
	for _, id := range slices.Sorted(maps.Keys(r.instances)) {
		x := r.instances[id]
		late := now.Sub(x.heard) - time.Duration(x.profile.HeartBeatTimer)*time.Second - r.cfg.Margin
		switch {
		case late > r.cfg.Removal:
			all = append(all, r.remove(now, x)...)
		case late > 0 && x.profile.NFStatus == sbi.Registered:
			p := *x.profile
			p.NFStatus = sbi.Suspended
			y, err := r.store(x.heard, &p)
			if err != nil {
				continue // it has been written before
			}
			status, _ := json.Marshal(p.NFStatus) // a string
			all = append(all, r.notices(now, sbi.NFProfileChanged, x.profile, y.profile, []sbi.ChangeItem{{Op: "REPLACE", Path: "/nfStatus", NewValue: status}})...)
		}
	}
	maps.DeleteFunc(r.wanted, func(_ string, s *sbi.SubscriptionData) bool { return now.After(*s.ValidityTime) })
	return all
}

// notices returns who is to be notified of an event: those who wanted to know of
// the instance as it was, or as it is. Without changes, they get the profile.
func (r *Repository) notices(now time.Time, e sbi.NFEvent, before, after *sbi.NFProfile, changes []sbi.ChangeItem) []Notice {
	var all []Notice
	for _, id := range slices.Sorted(maps.Keys(r.wanted)) {
		s := r.wanted[id]
		if now.After(*s.ValidityTime) || !s.Wants(e, before) && (after == nil || !s.Wants(e, after)) {
			continue
		}
		n := Notice{URI: s.NotificationURI, Data: sbi.NotificationData{Event: e, NFInstanceURI: managementPath + "/nf-instances/" + before.NFInstanceID}}
		switch {
		case changes != nil:
			n.Data.ProfileChanges = changes
		case after != nil:
			p := after.Public()
			n.Data.NFProfile = &p
		}
		all = append(all, n)
	}
	return all
}

// Subscribe stores a subscription and grants it a time.
func (r *Repository) Subscribe(now time.Time, body []byte) (*sbi.SubscriptionData, error) {
	s := &sbi.SubscriptionData{}
	if err := json.Unmarshal(body, s); err != nil {
		return nil, err
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.wanted) >= r.cfg.Subscriptions {
		return nil, sbi.Problem(http.StatusInternalServerError, sbi.InsufficientResources, fmt.Sprintf("there are %d subscriptions", r.cfg.Subscriptions))
	}
	r.last++
	s.SubscriptionID = strconv.Itoa(r.last)
	s.ValidityTime = r.granted(now, s.ValidityTime)
	r.wanted[s.SubscriptionID] = s
	return s, nil
}

// granted returns until when a subscription lasts that shall last until then.
func (r *Repository) granted(now time.Time, until *time.Time) *time.Time {
	most := now.Add(r.cfg.Subscribed).UTC().Truncate(time.Second)
	if until == nil || until.After(most) {
		return &most
	}
	return until
}

// Resubscribe applies a JSON Patch to a subscription: the time that it lasts.
func (r *Repository) Resubscribe(now time.Time, id string, patch []byte) (*sbi.SubscriptionData, error) {
	items, err := sbi.ParsePatch(patch)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.wanted[id]
	if was == nil {
		return nil, noSubscription()
	}
	s := *was
	for _, item := range items {
		var until time.Time
		if item.Path != "/validityTime" || item.Op != "replace" && item.Op != "add" {
			return nil, sbi.Problem(http.StatusForbidden, sbi.ModificationNotAllowed, "only validityTime of a subscription changes")
		}
		if err := json.Unmarshal(item.Value, &until); err != nil {
			return nil, invalid(sbi.OptionalMemberIncorrect, "/validityTime", "want a time of RFC 3339")
		}
		s.ValidityTime = r.granted(now, &until)
	}
	r.wanted[id] = &s
	return &s, nil
}

// Unsubscribe removes a subscription.
func (r *Repository) Unsubscribe(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wanted[id] == nil {
		return noSubscription()
	}
	delete(r.wanted, id)
	return nil
}

func noSubscription() error {
	return sbi.Problem(http.StatusNotFound, sbi.SubscriptionNotFound, "there is no such subscription")
}

func invalid(cause sbi.Cause, param, reason string) error {
	p := sbi.Problem(http.StatusBadRequest, cause, "")
	p.InvalidParams = []sbi.InvalidParam{{Param: param, Reason: reason}}
	return p
}
