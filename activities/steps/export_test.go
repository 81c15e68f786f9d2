package steps

// ForgetReports removes the reports of a run before.
var ForgetReports = forgetReports
