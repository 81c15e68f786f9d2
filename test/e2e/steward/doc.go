// Package steward tests the supervisor through the built program: tasks, their plans and loops, the questions to
// people, and what is left when it is killed.
package steward
