package deploy

import (
	"context"

	"weft"
)

// subject is one kind of event, with those who want it.
type subject struct {
	name        string
	decl        weft.Subject
	subscribers []*subscription
}

// subscription is one service's wish for a subject. The handler is set before
// the service is ready and read after all are.
type subscription struct {
	subject *subject
	service *service
	handler func(context.Context, any)
}

func (s *subject) subscriptionOf(sv *service) *subscription {
	for _, sub := range s.subscribers {
		if sub.service == sv {
			return sub
		}
	}
	return nil
}

// Publish hands an event to all subscribers, by pointer or encoded.
func (s *service) Publish(sub weft.Subject, event any) {
	to := s.worker.subjects[sub.SubjectName()]
	if to == nil || len(to.subscribers) == 0 {
		return
	}
	if s.worker.wire != nil {
		s.publishEncoded(to, event)
		return
	}
	for _, at := range to.subscribers {
		at.service.inbox.announce()
		at.service.enqueue(delivery{at, event})
	}
}

// enqueue puts an announced event into the service's inbox.
func (s *service) enqueue(d delivery) {
	s.inbox.put(d, func() {
		s.slow.Add(1)
		s.log.Warn("publisher has waited for a second: the queue of events is full",
			"subject", d.to.subject.name, "queue", queueBound)
	})
}

// deliver handles the service's events one after the other until its inbox is
// closed.
func (s *service) deliver() {
	select {
	case <-s.worker.started:
	case <-s.ctx.Done():
		return
	}
	var events [batch]delivery
	for {
		n := s.inbox.take(&events)
		if n == 0 {
			return
		}
		for i := range n {
			if s.ctx.Err() == nil {
				s.handle(&events[i])
			}
			events[i] = delivery{}
			s.inbox.handled()
		}
	}
}

// handle runs the handler of one event; its panic is logged and counted.
func (s *service) handle(d *delivery) {
	defer func() {
		if p := recover(); p != nil {
			_ = s.panicked("the handler of "+d.to.subject.name, p) // logged there; an event has nobody to answer
		}
	}()
	d.to.handler(s.ctx, d.event)
}
