use super::*;

#[test]
fn the_least_recently_used_value_makes_room() {
    let mut held = BoundedCache::new(100);
    for key in 0..4 {
        held.insert(key, key, 25);
    }
    assert!(held.get(&0).is_some());
    held.insert(4, 4, 30);
    let left: Vec<i32> = (0..5).filter(|key| held.peek(key).is_some()).collect();
    assert_eq!(left, [0, 3, 4]);
    held.insert(5, 5, 1000);
    let left: Vec<i32> = (0..6).filter(|key| held.peek(key).is_some()).collect();
    assert_eq!(left, [5], "what is larger than all room is kept alone");
}
