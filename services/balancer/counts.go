package balancer

// Counter is a metric that only grows.
type Counter interface{ Add(float64) }

// counts are the service's metrics.
type counts struct {
	begun, adopted, cut, dropped                      Counter
	recalled, direct, revoked, notAllowed, stray      Counter
	refused, full, closed, unreachable, lapsed        Counter
	spoofed, strange, answered, carried, sendingFails Counter
	retired, indicated                                Counter
	checks                                            map[string]Counter
}

func newCounts(counter func(name, help string, labels ...string) Counter) *counts {
	const packets = "Packets for VIPs that were not passed on, by reason."
	const ended = "Connections ended by the balancer, by reason."
	c := &counts{
		begun:        counter("connections_begun_total", "Connections given to a member."),
		adopted:      counter("connections_adopted_total", "Connections of an earlier run that go on."),
		cut:          counter("connections_ended_total", ended, "reason", "member_gone"),
		dropped:      counter("connections_ended_total", ended, "reason", "not_adopted"),
		lapsed:       counter("connections_ended_total", ended, "reason", "lapsed"),
		retired:      counter("goaways_total", "Connections whose clients were asked by GOAWAY to open others, for their member retires."),
		indicated:    counter("binding_indications_total", "Pairs that stay with their member over idle times, for an answer had a binding indication."),
		revoked:      counter("connections_ended_total", ended, "reason", "not_allowed"),
		recalled:     counter("connections_recalled_total", "Connections and pairs that went on after their entries had ended."),
		direct:       counter("direct_connections_total", "Connections of clients to the own address of a member that they have a pair with."),
		notAllowed:   counter("packets_refused_total", packets, "reason", "not_allowed"),
		stray:        counter("packets_refused_total", packets, "reason", "no_connection"),
		refused:      counter("packets_refused_total", packets, "reason", "no_member"),
		full:         counter("packets_refused_total", packets, "reason", "full"),
		closed:       counter("packets_refused_total", packets, "reason", "closed_port"),
		unreachable:  counter("packets_refused_total", packets, "reason", "member_away"),
		spoofed:      counter("packets_refused_total", packets, "reason", "spoofed"),
		strange:      counter("packets_refused_total", packets, "reason", "not_for_a_vip"),
		answered:     counter("answers_total", "Questions for VIPs answered: ARP, neighbour solicitation, echo."),
		carried:      counter("packets_carried_total", "Packets rewritten by the controller because the client's switch cannot."),
		sendingFails: counter("sends_failed_total", "Decisions that could not be sent."),
		checks:       map[string]Counter{},
	}
	for _, result := range []string{"good", "bad"} {
		c.checks[result] = counter("checks_total", "Health checks of members, by result.", "result", result)
	}
	return c
}
