// Package ends tests how iterations and loops end: the decisions of the protocol, budgets, measurements that fail,
// and the report.
package ends
