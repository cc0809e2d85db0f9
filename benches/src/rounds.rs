//! The figures of interleaved rounds.

/// The middle one.
pub fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// The median, with its interval of 95 % by the order of the values.
pub fn interval(mut of: Vec<f64>) -> String {
    of.sort_by(f64::total_cmp);
    let count = of.len() as f64;
    let half = 0.98 * count.sqrt();
    let low = (count / 2.0 - half).floor().max(0.0) as usize;
    let high = ((count / 2.0 + half).ceil() as usize).min(of.len() - 1);
    format!(
        "{:.3} ({:.3} to {:.3})",
        of[of.len() / 2],
        of[low],
        of[high]
    )
}
