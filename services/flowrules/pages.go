package flowrules

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weft-sdn/weft/flow"
)

// A page is one value in the store: some of the operator's entries of a switch.
// Many entries that are added together cost few writes, and a change costs
// writing one page. worker.storing guards all pages of a switch.
type page struct {
	key      string
	revision uint64 // 0: not in the store
	rules    []*rule
	open     bool // it may get more rules
	// tried is the value of a write that failed: it may be in the store all the
	// same.
	tried []byte
	// unread is what could not be read: it stays as it is.
	unread []json.RawMessage
}

// pageRules is how many entries a page has at most. A value stays far below
// what the store takes.
const pageRules = 32

// pageSet is the pages of a switch that may get more rules.
type pageSet struct {
	made int
	room []*page
}

// edit is what a page is to have instead.
type edit struct {
	page  *page
	rules []*rule
}

// edits collects changes of pages, so that each is written once.
type edits struct {
	list []*edit
	of   map[*page]*edit
}

// change returns the change of a page.
func (e *edits) change(p *page) *edit {
	if e.of == nil {
		e.of = map[*page]*edit{}
	}
	c := e.of[p]
	if c == nil {
		c = &edit{page: p, rules: slices.Clone(p.rules)}
		e.of[p] = c
		e.list = append(e.list, c)
	}
	return c
}

// drop removes a rule from its page.
func (e *edits) drop(r *rule) {
	if r.page == nil {
		return
	}
	c := e.change(r.page)
	c.rules = slices.DeleteFunc(c.rules, func(other *rule) bool { return other == r })
}

// enter adds a rule, in place of old, which may be nil.
func (w *worker) enter(e *edits, old, r *rule, run string) *edit {
	if old != nil && old.page != nil {
		c := e.change(old.page)
		for i, other := range c.rules {
			if other == old {
				c.rules[i] = r
				return c
			}
		}
	}
	for len(w.pages.room) > 0 {
		last := len(w.pages.room) - 1
		p := w.pages.room[last]
		rules := p.rules
		if c := e.of[p]; c != nil {
			rules = c.rules
		}
		if len(rules) < pageRules {
			c := e.change(p)
			c.rules = append(c.rules, r)
			return c
		}
		p.open = false
		w.pages.room = w.pages.room[:last]
	}
	w.pages.made++
	p := &page{key: fmt.Sprintf("%v/%s-%d", w.ledger.sw, run, w.pages.made), open: true}
	w.pages.room = append(w.pages.room, p)
	c := e.change(p)
	c.rules = append(c.rules, r)
	return c
}

// write writes the changed pages, some at the same time, and returns what failed.
func (w *worker) write(ctx context.Context, store Store, e *edits) map[*edit]error {
	var mu sync.Mutex // guards failed
	failed := map[*edit]error{}
	var wg sync.WaitGroup
	slots := make(chan struct{}, storers)
	for _, c := range e.list {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := w.writePage(ctx, store, c); err != nil {
				mu.Lock()
				failed[c] = err
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for _, c := range e.list {
		if failed[c] != nil {
			continue
		}
		for _, r := range c.page.rules {
			r.page = nil
		}
		c.page.rules = c.rules
		for _, r := range c.rules {
			r.page = c.page
		}
		if !c.page.open && len(c.rules) < pageRules && len(c.rules) > 0 {
			c.page.open = true
			w.pages.room = append(w.pages.room, c.page)
		}
	}
	return failed
}

// writePage writes one page. One without rules is written empty before it is
// deleted: a later instance that has it, too, then notices.
func (w *worker) writePage(ctx context.Context, store Store, c *edit) error {
	p := c.page
	if p.tried != nil {
		if err := p.checkFailedWrite(ctx, store); err != nil {
			return err
		}
	}
	empty := len(c.rules) == 0 && len(p.unread) == 0
	if empty && p.revision == 0 {
		return nil
	}
	w.mu.Lock()
	value, err := encodePage(w.ledger.sw, c.rules, p.unread)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	revision, err := store.Update(ctx, p.key, value, p.revision)
	if err != nil {
		p.tried = value
		return err
	}
	p.revision = revision
	if empty {
		if err := store.Delete(ctx, p.key); err != nil {
			return nil // an empty page is as good as none
		}
		p.revision = 0
	}
	return nil
}

// checkFailedWrite reads the page again to learn whether a failed write took effect.
func (p *page) checkFailedWrite(ctx context.Context, store Store) error {
	value, revision, err := store.Get(ctx, p.key)
	if err != nil {
		return err
	}
	if revision == p.revision || bytes.Equal(value, p.tried) {
		p.revision, p.tried = revision, nil
	}
	return nil // else somebody else has changed it: the write says so
}

// storedPage is the value of a page. Before there were pages, a value was one
// stored entry.
type storedPage struct {
	Entries []json.RawMessage `json:"entries"`
}

// encodePage returns the stored form of some rules, and of what was not read. The
// caller holds w.mu.
func encodePage(sw flow.DPID, rules []*rule, unread []json.RawMessage) ([]byte, error) {
	s := storedPage{Entries: make([]json.RawMessage, 0, len(rules)+len(unread))}
	for _, r := range rules {
		text, err := encode(sw, r)
		if err != nil {
			return nil, err
		}
		s.Entries = append(s.Entries, text)
	}
	s.Entries = append(s.Entries, unread...)
	return json.Marshal(s)
}

// loaded is an entry of a page, and its switch.
type loaded struct {
	sw   flow.DPID
	rule *rule
}

// decodePage returns the entries of a value, and what could not be read of it
// and why.
func decodePage(key string, value []byte) (list []loaded, unread []json.RawMessage, errs []error) {
	var s storedPage
	if err := json.Unmarshal(value, &s); err != nil {
		return nil, nil, []error{fmt.Errorf("stored entry %s: %w", key, err)}
	}
	if s.Entries == nil {
		sw, r, was, err := decode(value)
		if err == nil {
			if want := storeKey(sw, was); want != key {
				err = fmt.Errorf("describes the entry of key %s", want)
			}
		}
		if err != nil {
			return nil, nil, []error{fmt.Errorf("stored entry %s: %w", key, err)}
		}
		return []loaded{{sw, r}}, nil, nil
	}
	of, _, _ := strings.Cut(key, "/")
	for i, text := range s.Entries {
		sw, r, _, err := decode(text)
		if err == nil && sw.String() != of {
			err = fmt.Errorf("of switch %v", sw)
		}
		if err != nil {
			errs, unread = append(errs, fmt.Errorf("stored entry %d of %s: %w", i+1, key, err)), append(unread, text)
			continue
		}
		list = append(list, loaded{sw, r})
	}
	return list, unread, errs
}

// runName distinguishes the pages of a run from those of earlier ones.
func runName(now time.Time) string { return "page-" + strconv.FormatInt(now.UnixNano(), 36) }
